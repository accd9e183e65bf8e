"""The workers' side of the plugin."""

import multiprocessing
import os
import signal
from types import SimpleNamespace
from unittest import mock

import stand_ins as fake
from sa_profile.vllm import register
from switching import command


def two_steps():
    made = fake.loaded()
    print(made.execute_model(fake.scheduled("a-1", "b-2")), made.sample_tokens(None))
    made.execute_model(fake.scheduled())


def test_steps_carry_their_facts_once_and_are_linked(record):
    trace = record(two_steps)
    assert trace.stdout == "model output tokens\n" and trace.stderr == ""
    step, empty = trace.args("WorkerWrapperBase.execute_model")
    assert step == dict(
        tokens=8, prefill_requests=2, prefill_tokens=8, decode_requests=0, decode_tokens=0, request_ids=["a-1", "b-2"],
    )
    assert empty["tokens"] == 0
    assert trace.args("model_runner.execute_model") == [{}, {}]
    assert trace.args("model_runner.sample_tokens") == [{}]
    assert len(trace.named("WorkerWrapperBase.init_worker")) == 1
    assert [phase for phase, _ in trace.flows("request")] == ["t", "t"]
    assert [phase for phase, _ in trace.flows("batch")] == ["t"]


def ray():
    """Ray's compiled graph calls the runner past the wrapper."""
    fake.loaded().worker.model_runner.execute_model(fake.scheduled("a-1"), None)


def test_a_runner_called_directly_carries_the_facts(record):
    trace = record(ray)
    assert trace.one("model_runner.execute_model")["request_ids"] == ["a-1"]
    assert [phase for phase, _ in trace.flows("batch")] == ["t"]


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


def test_a_worker_that_is_killed_while_it_samples_names_its_step(record):
    trace = record(killed_while_it_samples, code=-9)
    trace.merge()
    step = trace.one("WorkerWrapperBase.execute_model")
    assert step["request_ids"] == ["a-1", "b-2"]
    assert trace.unfinished() == {"model_runner.sample_tokens": step}


def with_queue():
    register()
    process = fake.WorkerProc()
    process.enqueue_output("tokens")
    print(process.sent)


def test_answers_on_their_way_back(record):
    trace = record(with_queue)
    assert trace.stdout == "['tokens']\n" and len(trace.named("WorkerProc.enqueue_output")) == 1


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
    """Without a profiler of the user's, and with one."""
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


def test_scopes_tell_what_ended_them_and_the_users_own_profiler_still_gets_them(record):
    trace = record(failing_scopes)
    assert [span["args"] for span in trace.named("fails")] == [{"error": "KeyError"}] * 2
    assert trace.stdout == "[]\n['+fails', '-fails']\nfails\n"


# Names


def named(worker):
    from sa_profile._vllm import names

    return names.worker_name(worker), names.engine_name(), names.api_server_name()


def titled():
    from sa_profile._vllm import names

    parallel = SimpleNamespace(tensor_parallel_size=4, pipeline_parallel_size=2, data_parallel_size=1, data_parallel_rank=0)
    worker = SimpleNamespace(rank=7, parallel_config=parallel)
    for title in ("Worker_TP3", "EngineCore_DP0", None):
        with mock.patch.object(names, "title", lambda title=title: title):
            print(*named(worker))
    with mock.patch.object(names, "title", lambda: None), mock.patch.dict("os.environ", RAY_JOB_ID="1"):
        print(names.worker_name(worker))


def test_names_are_vllms_titles(record):
    assert record(titled).stdout == (
        "Worker_TP3 Worker_TP3 Worker_TP3\nEngineCore_DP0 EngineCore_DP0 EngineCore_DP0\nNone None APIServer\nWorker_PP1_TP3\n"
    )


def titled_without_the_engine():
    """vLLM tells the workers of a dense model nothing of other engines."""
    from sa_profile._vllm import names

    parallel = SimpleNamespace(tensor_parallel_size=1, pipeline_parallel_size=1, data_parallel_size=1, data_parallel_rank=0, data_parallel_index=3)
    worker = SimpleNamespace(rank=0, parallel_config=parallel)
    for parent in ("VLLM::EngineCore_DP1\0", "VLLM::EngineCore\0", "python\0EngineCore_DP1.py\0"):
        with mock.patch.object(names, "_parent_title", lambda parent=parent: parent):
            for title in ("Worker", "Worker_TP3", "Worker_DP0_TP3"):
                with mock.patch.object(names, "title", lambda title=title: title):
                    print(names.worker_name(worker), end=" ")


def test_a_workers_engine_is_in_its_name(record):
    of_title = "Worker_DP1 Worker_DP1_TP3 Worker_DP0_TP3 "
    of_index = "Worker_DP3 Worker_DP3_TP3 Worker_DP0_TP3 "
    assert record(titled_without_the_engine).stdout == of_title + of_index * 2


def named_while_paused():
    multiprocessing.current_process().name = "VllmWorker-0"
    fake.wrapper()


def test_a_worker_that_waits_paused_has_its_name(record):
    trace = record(named_while_paused, SA_PROFILE_START="paused")
    assert "Worker" in command("status", trace.folder)
