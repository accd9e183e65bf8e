"""Compilations of torch as spans, on a stand-in for its callbacks."""

import enum
import time
import types

import sa_profile
from sa_profile._hooks import compilation


class Trigger(enum.Enum):
    DYNAMO = 1


class Handler:
    def __init__(self):
        self.begins, self.ends = [], []
        self.register_start_callback, self.register_end_callback = self.begins.append, self.ends.append

    def compile(self, *args):
        self.begins[0](*args)
        time.sleep(0.01)
        self.ends[0](*args)


ARGS = types.SimpleNamespace(callback_trigger=Trigger.DYNAMO, compile_id="0/1")


def compiled(*args, clock_fails=False):
    handler = Handler()
    compilation.hook(types.SimpleNamespace(callback_handler=handler))
    handler.compile(*map(globals().get, args))  # before the run has begun
    sa_profile.instant("begun")
    if clock_fails:
        compilation.now_ns = lambda: 1 // 0
    handler.compile(*map(globals().get, args))
    compilation.hook(types.SimpleNamespace())


def kernels():
    module = types.SimpleNamespace(compile=lambda source: f"kernel of {source}")
    compilation.hook_triton(module)
    compilation.hook_triton(types.SimpleNamespace())
    print(module.compile("source"))


def test_a_kernel_of_triton_is_a_span(record):
    trace = record(kernels)
    assert trace.stdout == "kernel of source\n" and len(trace.named("triton.compile")) == 1 and trace.stderr == ""


def test_a_compilation_is_a_span(record):
    trace = record(compiled, "ARGS")
    (span,) = trace.named("torch.compile")
    assert span["args"] == dict(compile_id="0/1", trigger="dynamo") and span["dur"] >= 10_000
    assert trace.stderr.count("callback_handler") == trace.stderr.count("\n") == 1


def test_an_older_torch_says_nothing_of_it(record):
    (span,) = record(compiled).named("torch.compile")
    assert span.get("args", {}) == {} and span["dur"] >= 10_000


def test_what_fails_of_ours_fails_no_compilation(record):
    trace = record(compiled, "ARGS", clock_fails=True)
    assert trace.named("torch.compile") == [] and trace.stderr.count("its events are missing") == 1
