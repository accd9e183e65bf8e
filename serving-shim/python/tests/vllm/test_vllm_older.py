"""Older versions of vLLM that are still in use: what they lack, and where the plugin finds the same data instead."""

import queue
import time
import types
from types import SimpleNamespace

import pytest
import stand_ins as fake
from sa_profile.vllm import register
from stand_ins import serves

WITHOUT_PREPROCESSING = dict(FAKE_VLLM_WITHOUT="EngineCore.preprocess_add_request")
VERBOSE = dict(SA_PROFILE_LEVEL="verbose")


def the_same_elsewhere():
    """Uses the older places of the cache usage, the input processor, and metrics that the client counts itself."""
    fake.AsyncLLM._record_stats = staticmethod(lambda stat_loggers, scheduler_stats, iteration_stats: stat_loggers)
    core = fake.engine()
    del type(core.scheduler).get_kv_cache_usage
    fake.answer(core, "a-1")
    text, request = fake.Processor().process_inputs("cmpl-1", [1, 2], 3, 0.0)
    print(text, request.request_id, fake.AsyncLLM._record_stats(["logger"], scheduler_stats=None, iteration_stats=None))


def test_data_in_other_places_of_older_versions_is_the_same(record):
    trace = record(the_same_elsewhere, **VERBOSE)
    assert trace.stdout == "[1, 2] cmpl-1 ['logger']\n" and trace.stderr == ""
    assert [one["used_percent"] for one in trace.args("kv_cache")] == [1.0, 1.0, 1.0]
    assert len(trace.named("InputProcessor.process_inputs")) == len(trace.named("StatLoggerManager.record")) == 1


def output_of_0_11(output):
    """Returns the output of 0.11: flags next to the ids, no counts of outputs, and no preempted ids."""
    cached = output.scheduled_cached_reqs
    flags = [one in cached.resumed_req_ids for one in cached.req_ids]
    return older(output, SimpleNamespace(req_ids=cached.req_ids, num_computed_tokens=cached.num_computed_tokens, resumed_from_preemption=flags))


def output_of_0_9(output):
    """Returns the output of 0.9: one object for each request."""
    cached = output_of_0_11(output).scheduled_cached_reqs
    rows = zip(cached.req_ids, cached.num_computed_tokens, cached.resumed_from_preemption, strict=True)
    each = [SimpleNamespace(req_id=one, num_computed_tokens=computed, resumed_from_preemption=flag) for one, computed, flag in rows]
    return older(output, each)


def older(output, cached):
    members = {name: value for name, value in vars(output).items() if name not in ("scheduled_cached_reqs", "preempted_req_ids")}
    return SimpleNamespace(**members, scheduled_cached_reqs=cached)


def put_off(version):
    output_of = {"now": lambda output: output, "0.11": output_of_0_11, "0.9": output_of_0_9}[version]
    core = fake.engine()
    schedule = core.scheduler.schedule
    core.scheduler.schedule = lambda *args: output_of(schedule(*args))
    fake.add(core, "a-1", tokens=4)
    core.step_fn()
    core.scheduler.preempt.add("a-1")
    core.step_fn()
    fake.turn(core)


@pytest.mark.parametrize("version", ["now", "0.11", "0.9"])
def test_preempted_and_resumed_requests_are_found(record, version):
    trace = record(put_off, version)
    assert trace.stderr == ""
    assert trace.one("request.preempted") == dict(request_id="a-1", output_tokens=1)
    assert len(trace.named("request.resumed")) == 1 and len(trace.named("request.scheduled")) == 1
    finished = trace.one("request.finished")
    assert finished["preemptions"] == 1 and finished["output_tokens"] == 4
    schedules = trace.args("scheduler.schedule")
    assert [one["preempted_ids"] for one in schedules if "preempted_ids" in one] == [["a-1"]]
    assert [one["prefill_tokens"] for one in schedules if one.get("prefill_tokens")] == [5, 6]
    assert [phase for phase, _ in trace.flows("batch")] == ["s", "f"] * 4


def without_sampling():
    del fake.Executor.sample_tokens, fake.Runner.sample_tokens
    fake.run("a-1", "b-2")
    print(fake.loaded().execute_model(fake.scheduled("c-3")))


def test_a_step_without_a_separate_sampling_call_is_not_reported(record):
    trace = record(without_sampling)
    assert trace.stdout == "model output\n" and trace.stderr == ""
    assert len(trace.named("model_runner.execute_model")) == 1


@serves
async def of_older_clients(server):
    """Asks for two answers. Each output contains the number of its cached tokens."""
    parent = SimpleNamespace(request_id="cmpl-1", sampling_params=SimpleNamespace(n=2))
    for index in range(2):
        child = SimpleNamespace(request_id=f"{index}_cmpl-1", prompt_token_ids=[1, 2, 3])
        server.processor.add_request(child, None, parent, index)
    for reason in (None, fake.FinishReason.LENGTH):
        output = SimpleNamespace(request_id="1_cmpl-1", new_token_ids=[5], finish_reason=reason, num_cached_tokens=2)
        server.processor.process_outputs([output])


def test_several_answers_have_the_clients_id_and_cached_tokens_come_from_each_output(record):
    trace = record(of_older_clients)
    found = trace.args("OutputProcessor.add_request")
    assert {one["request_id"]: one["external_id"] for one in found} == {"0_cmpl-1": "cmpl-1", "1_cmpl-1": "cmpl-1"}
    answered = {one["request_id"]: one for one in trace.awaited()}["1_cmpl-1"]
    assert (answered["cached_tokens"], answered["output_tokens"]) == (2, 2)


def unprepared():
    core = fake.engine()
    core.scheduler.add_request, theirs = lambda one: theirs(fake.Request(one)), core.scheduler.add_request
    core.add_request(fake.request("a-1"))
    fake.turn(core)


def test_an_engine_that_prepares_requests_itself_is_not_reported(record):
    trace = record(unprepared, **WITHOUT_PREPROCESSING)
    assert trace.stderr == "" and trace.one("request.finished")["prompt_tokens"] == 3


def queued(most_waiting):
    """Puts unprepared requests into the queue, like the engine's thread did."""
    from sa_profile._vllm import engine as plugin

    plugin.MAX_WAITING = most_waiting
    core, ids = fake.process(), [f"r-{n}" for n in range(4)]
    core.input_queue = queue.Queue()
    core.process_input_sockets([*(("ADD", fake.request(one)) for one in ids), ("ABORT", ["other"]), ("FAILED", b"")])
    time.sleep(0.02)
    for _ in ids:
        core.add_request(fake.Request(core.input_queue.get()[1]))
    fake.turn(core)


def test_the_wait_of_an_unprepared_request_is_a_span_and_one_beyond_the_limit_is_marked(record):
    trace = record(queued, 2, **WITHOUT_PREPROCESSING)
    waits, added = trace.named("EngineCore.input_queue"), trace.named("EngineCore.add_request")
    assert trace.stderr == "" and [one["args"] for one in waits] == [dict(request_id="r-0"), dict(request_id="r-1")]
    assert waits[0]["dur"] >= 20_000 and waits[0]["ts"] + waits[0]["dur"] <= added[0]["ts"]
    assert [one["args"]["request_id"] for one in added if one["args"].get("wait_not_recorded")] == ["r-2", "r-3"] and len(added) == 4
    assert record(queued, 2).named("EngineCore.input_queue") == []


def in_an_older_module():
    """Uses a wrapper that passes all unknown calls on to the worker."""
    register()
    import vllm.v1.worker.worker_base as module
    from vllm.worker.worker_base import WorkerWrapperBase

    made = WorkerWrapperBase()
    made.init_worker([{}])
    fake.loaded(made)
    print(hasattr(module, "WorkerWrapperBase"), made.execute_model(fake.scheduled("a-1")), made.execute_model(fake.scheduled("b-2")))


def test_the_wrapper_of_older_versions_is_the_same(record):
    trace = record(in_an_older_module, FAKE_VLLM_OLDER_WORKER="1")
    assert trace.stdout == "False model output model output\n" and trace.stderr == ""
    steps = trace.args("WorkerWrapperBase.execute_model")
    assert [one["request_ids"] for one in steps] == [["a-1"], ["b-2"]]
    assert trace.args("model_runner.execute_model") == [{}, {}]
    assert [phase for phase, _ in trace.flows("batch")] == ["t", "t"]


def forget_scopes():
    from vllm.v1 import utils

    del utils._PROFILER_FUNC


def without_scopes():
    forget_scopes()
    made = fake.loaded()
    print(made.execute_model(fake.scheduled("a-1")), made.execute_model(fake.scheduled("b-2")))
    try:
        made.worker.model_runner.model.forward = lambda tokens: 1 / 0
        made.execute_model(fake.scheduled("c-3"))
    except ZeroDivisionError:
        print("failed")


def test_a_model_without_scopes_has_a_span(record):
    trace = record(without_scopes)
    assert trace.stdout == "model output model output\nfailed\n"
    assert trace.stderr.count("\n") == 1 and "of its own scopes only `gpu_model_runner: forward` is shown" in trace.stderr
    steps, forwards = trace.named("model_runner.execute_model", "X"), trace.named("gpu_model_runner: forward", "X")
    assert [one.get("args", {}).get("error") for one in forwards] == [None, None, "ZeroDivisionError"]
    for step, forward in zip(steps, forwards, strict=True):
        assert step["ts"] <= forward["ts"] and forward["ts"] + forward["dur"] <= step["ts"] + step["dur"]


def compiled_model():
    """Copies the code of `forward`, as vLLM-Ascend does. It must have no free variables, and torch compiles the module."""
    forget_scopes()
    model = fake.loaded().worker.model_runner.model
    copied = types.FunctionType(model.forward.__code__.replace(co_name="cached"), {})
    print(vars(model), model.forward.__func__ is fake.Model.forward, copied(model, []))


@pytest.mark.parametrize("start", [None, "paused"])
def test_the_model_stays_unchanged(record, start):
    assert record(compiled_model, SA_PROFILE_START=start).stdout == "{} True model output\n"
