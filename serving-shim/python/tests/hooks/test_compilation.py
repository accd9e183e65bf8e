"""Compilations by torch as spans, with a stand-in for its callbacks."""

import enum
import time
import types

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


def compiled():
    module, handler = types.SimpleNamespace(compile=lambda source: f"kernel of {source}"), Handler()
    compilation.hook_triton(module)
    compilation.hook(types.SimpleNamespace(callback_handler=handler))
    handler.compile(ARGS)  # before the run has begun
    print(module.compile("source"))
    handler.compile(ARGS)
    handler.compile()  # an older torch passes no arguments
    compilation.now_ns = lambda: 1 // 0
    handler.compile(ARGS)
    compilation.hook(types.SimpleNamespace())
    compilation.hook_triton(types.SimpleNamespace())


def test_compilations_are_spans(record):
    trace = record(compiled)
    spans = trace.named("torch.compile")
    assert [span.get("args", {}) for span in spans] == [dict(compile_id="0/1", trigger="dynamo"), {}]
    assert all(span["dur"] >= 10_000 for span in spans)
    assert trace.stdout == "kernel of source\n" and len(trace.named("triton.compile")) == 1
    assert [trace.stderr.count(words) for words in ("callback_handler", "its events are missing", "\n")] == [1, 1, 2]
