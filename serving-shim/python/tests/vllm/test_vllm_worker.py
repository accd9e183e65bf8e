"""The workers' part of the plugin."""

import multiprocessing
import os
import signal
from types import SimpleNamespace
from unittest import mock

import stand_ins as fake
from sa_profile.vllm import register
from switching import command


def steps():
    made, process = fake.loaded(), fake.WorkerProc()
    print(made.execute_model(fake.scheduled("a-1", "b-2")), made.sample_tokens(None))
    made.execute_model(fake.scheduled())
    made.worker.model_runner.execute_model(fake.scheduled("c-3"), None)  # Ray's compiled graph calls the runner directly
    process.enqueue_output("tokens")
    print(process.sent)


def test_steps_have_their_args_once_and_are_linked(record):
    trace = record(steps)
    assert trace.stdout == "model output tokens\n['tokens']\n" and trace.stderr == ""
    step, empty = trace.args("WorkerWrapperBase.execute_model")
    assert step == dict(
        tokens=8, prefill_requests=2, prefill_tokens=8, decode_requests=0, decode_tokens=0, request_ids=["a-1", "b-2"],
    )
    assert empty["tokens"] == 0
    *inside, called_directly = trace.args("model_runner.execute_model")
    assert inside == [{}, {}] and called_directly["request_ids"] == ["c-3"]
    assert trace.args("model_runner.sample_tokens") == [{}]
    assert len(trace.named("WorkerWrapperBase.init_worker")) == len(trace.named("WorkerProc.enqueue_output")) == 1
    assert [phase for phase, _ in trace.flows("request")] == ["t", "t", "t"]
    assert [phase for phase, _ in trace.flows("batch")] == ["t", "t"]
    assert len(trace.named("gpu_model_runner: forward", "X")) == 3, "vLLM's own scope alone"


def failing():
    made = fake.wrapper()
    made.worker.load()
    made.execute_model(fake.scheduled("a-1"))
    made.worker.model_runner.error = MemoryError("out of device memory")
    try:
        made.execute_model(fake.scheduled("b-2"))
    except MemoryError as error:
        print(error)
    made.worker.model_runner.error = None
    made.execute_model(fake.scheduled("c-3"))


def test_a_step_that_fails_fails_as_before(record):
    trace = record(failing)
    assert trace.stdout == "out of device memory\n"
    for name in ("WorkerWrapperBase.execute_model", "model_runner.execute_model"):
        assert [one.get("error") for one in trace.args(name)] == [None, "MemoryError", None]


def killed_while_it_samples():
    register()
    fake.Runner.sample_tokens = lambda _runner, _output: os.kill(os.getpid(), signal.SIGKILL)
    made = fake.loaded()
    made.execute_model(fake.scheduled("a-1", "b-2"))
    made.sample_tokens(None)


def test_a_worker_killed_while_it_samples_has_its_step_in_its_trace(record):
    trace = record(killed_while_it_samples, code=-9)
    trace.merge()
    step = trace.one("WorkerWrapperBase.execute_model")
    assert step["request_ids"] == ["a-1", "b-2"]
    assert trace.unfinished() == {"model_runner.sample_tokens": step}


# vLLM's own scopes


def scoped():
    register()
    from vllm.v1 import utils

    with utils.record_function_or_nullcontext("gpu_model_runner: forward"):
        with utils.record_function_or_nullcontext("schedule: allocate_slots"):
            pass


def test_vllm_scopes_are_spans(record):
    trace = record(scoped)
    assert len(trace.named("gpu_model_runner: forward")) == 1
    assert not trace.named("schedule: allocate_slots"), "one for each request: verbose"
    assert record(scoped, SA_PROFILE_LEVEL="verbose").named("schedule: allocate_slots")


def failing_scopes():
    """Opens scopes without and with a profiler of the user."""
    register()
    from vllm.v1 import utils

    from sa_profile._vllm import scopes

    for theirs in (None, utils.Theirs):
        if theirs is not None:
            utils._PROFILER_FUNC = theirs
            scopes.hook(utils)
            scopes.hook(utils)
        try:
            with utils.record_function_or_nullcontext("fails") as scope:
                raise KeyError("inside")
        except KeyError:
            print(utils.scopes)
    print(scope.name)


def test_scopes_record_their_error_and_the_users_profiler_still_gets_them(record):
    trace = record(failing_scopes)
    assert [span["args"] for span in trace.named("fails")] == [{"error": "KeyError"}] * 2
    assert trace.stdout == "[]\n['+fails', '-fails']\nfails\n"


# Names


def titled():
    from sa_profile._vllm import names

    def named(title, parent="", rank=0, **sizes):
        parallel = SimpleNamespace(**dict(tensor_parallel_size=1, pipeline_parallel_size=1, data_parallel_size=1, data_parallel_rank=0) | sizes)
        with mock.patch.multiple(names, title=lambda: title, _parent_title=lambda: parent):
            print(names.worker_name(SimpleNamespace(rank=rank, parallel_config=parallel)), names.engine_name(), names.api_server_name())

    for title in ("Worker_TP3", "EngineCore_DP0", None):
        named(title)
    for title in ("Worker", "Worker_TP3", "Worker_DP0_TP3"):
        for parent in ("VLLM::EngineCore_DP1\0", "VLLM::EngineCore\0", "python\0EngineCore_DP1.py\0"):
            named(title, parent, data_parallel_index=3)
    os.environ["RAY_JOB_ID"] = "1"
    named(None, rank=7, tensor_parallel_size=4, pipeline_parallel_size=2)


def test_names_are_vllms_titles_with_the_engine_of_a_worker(record):
    """Workers of a dense model do not know of other engines."""
    workers, engines, servers = zip(*(line.split() for line in record(titled).stdout.splitlines()), strict=True)
    titles = ["Worker_TP3", "EngineCore_DP0", "None"]
    of_engines = [f"Worker{engine}" for engine in ("_DP1", "_DP3", "_DP3", "_DP1_TP3", "_DP3_TP3", "_DP3_TP3", *["_DP0_TP3"] * 3)]
    assert [*workers] == [*titles, *of_engines, "Worker_PP1_TP3"]
    assert [*engines[:3]] == titles and [*servers[:3]] == [*titles[:2], "APIServer"]


def named_while_paused():
    multiprocessing.current_process().name = "VllmWorker-0"
    fake.wrapper()


def test_a_paused_worker_has_its_name(record):
    trace = record(named_while_paused, SA_PROFILE_START="paused")
    assert "Worker" in command("status", trace.folder)
