"""The workers' side of the plugin."""

from sa_profile.vllm import register


def scheduled(*ids, computed=0):
    from vllm.v1.core.sched.output import CachedRequestData, NewRequestData, SchedulerOutput

    new = [NewRequestData(one, computed) for one in ids]
    return SchedulerOutput(new, CachedRequestData(), {one: 4 for one in ids}, 4 * len(ids))


def wrapper():
    register()
    from vllm.v1.worker.worker_base import WorkerWrapperBase

    made = WorkerWrapperBase()
    made.init_worker([{}])
    return made


def two_steps():
    made = wrapper()
    made.worker.load()
    made.initialize_from_config([])
    print(made.execute_model(scheduled("a-1", "b-2")), made.sample_tokens(None))
    made.execute_model(scheduled())


def test_steps_carry_their_facts_once(record):
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


def test_requests_and_the_batch_reach_the_worker(record):
    trace = record(two_steps)
    assert [phase for phase, _ in trace.flows("request")] == ["t", "t"]
    assert [phase for phase, _ in trace.flows("batch")] == ["t"]


def ray():
    """Ray's compiled graph calls the runner past the wrapper."""
    made = wrapper()
    made.worker.load()
    made.initialize_from_config([])
    made.worker.model_runner.execute_model(scheduled("a-1"), None)


def test_a_runner_called_directly_carries_the_facts(record):
    trace = record(ray)
    assert trace.one("model_runner.execute_model")["request_ids"] == ["a-1"]
    assert [phase for phase, _ in trace.flows("batch")] == ["t"]


def failing():
    made = wrapper()
    made.worker.load()
    made.execute_model(scheduled("a-1"))
    made.worker.model_runner.error = MemoryError("out of device memory")
    try:
        made.execute_model(scheduled("b-2"))
    except MemoryError as error:
        print(error)
    made.worker.model_runner.error = None
    made.execute_model(scheduled("c-3"))


def test_a_step_that_fails_fails_as_before(record):
    trace = record(failing)
    assert trace.stdout == "out of device memory\n"
    assert [one.get("error") for one in trace.args("WorkerWrapperBase.execute_model")] == [None, "MemoryError", None]
    assert [one.get("error") for one in trace.args("model_runner.execute_model")] == [None, "MemoryError", None]


def killed_while_it_samples():
    import os
    import signal

    made = wrapper()
    from vllm.v1.worker import worker_base

    made.worker.load()
    worker_base.Runner.sample_tokens = lambda _runner, _output: os.kill(os.getpid(), signal.SIGKILL)
    made.initialize_from_config([])
    made.execute_model(scheduled("a-1", "b-2"))
    made.sample_tokens(None)


def test_a_worker_that_is_killed_while_it_samples_names_its_step(record):
    trace = record(killed_while_it_samples, code=-9)
    trace.merge()
    step = trace.one("WorkerWrapperBase.execute_model")
    assert step["request_ids"] == ["a-1", "b-2"]
    assert trace.unfinished() == {"model_runner.sample_tokens": step}


def with_queue():
    register()
    from vllm.v1.executor.multiproc_executor import WorkerProc

    process = WorkerProc()
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
    print(utils.scopes)


def test_vllm_scopes_are_spans(record):
    trace = record(scoped)
    assert len(trace.named("gpu_model_runner: forward")) == 1
    assert not trace.named("schedule: allocate_slots"), "one for each request: verbose"
    assert record(scoped, SA_PROFILE_LEVEL="verbose").named("schedule: allocate_slots")


def scoped_with_theirs():
    register()
    from vllm.v1 import utils
    from sa_profile._vllm import scopes

    utils._PROFILER_FUNC = utils.Theirs
    scopes.hook(utils)
    scopes.hook(utils)
    try:
        with utils.record_function_or_nullcontext("forward") as theirs:
            raise KeyError("inside")
    except KeyError:
        print(theirs.name, utils.scopes)


def failing_scopes():
    register()
    from vllm.v1 import utils
    from sa_profile._vllm import scopes

    for theirs in (None, utils.Theirs):
        if theirs is not None:
            utils._PROFILER_FUNC = theirs
            scopes.hook(utils)
        try:
            with utils.record_function_or_nullcontext("fails"):
                raise KeyError("inside")
        except KeyError:
            pass


def test_scopes_tell_what_ended_them_whoever_else_profiles(record):
    assert [span["args"] for span in record(failing_scopes).named("fails")] == [{"error": "KeyError"}] * 2


def test_the_users_own_profiler_still_gets_them(record):
    trace = record(scoped_with_theirs)
    assert trace.stdout == "forward ['+forward', '-forward']\n" and len(trace.named("forward")) == 1


# Names


def titled():
    from types import SimpleNamespace
    from unittest import mock

    from sa_profile._vllm import names

    parallel = SimpleNamespace(tensor_parallel_size=4, pipeline_parallel_size=2, data_parallel_size=1, data_parallel_rank=0)
    worker = SimpleNamespace(rank=7, parallel_config=parallel)
    with mock.patch.object(names, "title", lambda: "Worker_TP3"):
        print(names.worker_name(worker), names.api_server_name())
    with mock.patch.object(names, "title", lambda: "EngineCore_DP0"):
        print(names.engine_name())
    with mock.patch.object(names, "title", lambda: None):
        print(names.worker_name(worker), names.engine_name(), names.api_server_name())
        with mock.patch.dict("os.environ", RAY_JOB_ID="1"):
            print(names.worker_name(worker))


def titled_without_the_engine():
    """vLLM tells the workers of a dense model nothing of other engines."""
    from types import SimpleNamespace
    from unittest import mock

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
    import multiprocessing

    multiprocessing.current_process().name = "VllmWorker-0"
    wrapper()


def test_a_worker_that_waits_paused_has_its_name(record):
    import subprocess
    import sys
    from pathlib import Path

    trace = record(named_while_paused, SA_PROFILE_START="paused")
    done = subprocess.run([Path(sys.executable).with_name("sa-profile"), "status", trace.folder], capture_output=True, text=True)
    assert "Worker" in done.stdout, done.stdout + done.stderr


def test_names_are_vllms_titles(record):
    assert record(titled).stdout == "Worker_TP3 Worker_TP3\nEngineCore_DP0\nNone None APIServer\nWorker_PP1_TP3\n"
