"""What versions of vLLM lack that are still in use, and where the plugin finds the same facts there."""

import time
from types import SimpleNamespace

import pytest
from sa_profile.vllm import register


def without_usage():
    from test_vllm_engine import add, engine, turn

    core = engine()
    del type(core.scheduler).get_kv_cache_usage
    add(core, "a-1")
    turn(core)


def test_the_cache_is_read_where_the_scheduler_does_not_tell_its_use(record):
    trace = record(without_usage)
    assert [one["used_percent"] for one in trace.args("kv_cache")] == [1.0, 1.0, 1.0] and trace.stderr == ""


def output_of_0_11(output):
    """Flags beside the ids, no counts of outputs, and nobody that was put off."""
    cached = output.scheduled_cached_reqs
    flags = [one in cached.resumed_req_ids for one in cached.req_ids]
    return older(output, SimpleNamespace(req_ids=cached.req_ids, num_computed_tokens=cached.num_computed_tokens, resumed_from_preemption=flags))


def output_of_0_9(output):
    """The same as one object for each request."""
    cached = output_of_0_11(output).scheduled_cached_reqs
    rows = zip(cached.req_ids, cached.num_computed_tokens, cached.resumed_from_preemption, strict=True)
    each = [SimpleNamespace(req_id=one, num_computed_tokens=computed, resumed_from_preemption=flag) for one, computed, flag in rows]
    return older(output, each)


def older(output, cached):
    facts = {name: value for name, value in vars(output).items() if name not in ("scheduled_cached_reqs", "preempted_req_ids")}
    return SimpleNamespace(**facts, scheduled_cached_reqs=cached)


def put_off(output_of):
    from test_vllm_engine import add, engine, turn

    core = engine()
    schedule = core.scheduler.schedule
    core.scheduler.schedule = lambda *args: output_of(schedule(*args))
    add(core, "a-1", tokens=4)
    core.step_fn()
    core.scheduler.preempt.add("a-1")
    core.step_fn()
    turn(core)


def put_off_now():
    put_off(lambda output: output)


def put_off_0_11():
    put_off(output_of_0_11)


def put_off_0_9():
    put_off(output_of_0_9)


@pytest.mark.parametrize("function", [put_off_now, put_off_0_11, put_off_0_9])
def test_who_is_put_off_and_resumed_is_found(record, function):
    trace = record(function)
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
    from test_vllm_engine import two_requests
    from test_vllm_worker import scheduled, wrapper
    from vllm.v1.executor.executor import Executor
    from vllm.v1.worker.worker_base import Runner

    del Executor.sample_tokens, Runner.sample_tokens
    two_requests()
    made = wrapper()
    made.worker.load()
    made.initialize_from_config([])
    print(made.execute_model(scheduled("c-3")))


def test_a_step_that_samples_with_its_model_is_no_lack(record):
    trace = record(without_sampling)
    assert trace.stdout == "model output\n" and trace.stderr == ""
    assert len(trace.named("model_runner.execute_model")) == 1


def three_requests():
    from test_vllm_frontend import three_requests as run

    run()


def test_where_nobody_gives_an_internal_id_the_clients_one_arrives(record):
    trace = record(three_requests, FAKE_VLLM_WITHOUT="InputProcessor.assign_request_id")
    assert trace.stderr == ""
    ids = {f"cmpl-{n}-0": f"cmpl-{n}-0" for n in range(3)}
    spans = [one["args"] for one in trace.named("request", "X") if "external_id" in one["args"]]
    assert {one["request_id"]: one["external_id"] for one in spans} == ids
    for flow in {flow for _, flow in trace.flows("request")}:
        assert [phase for phase, one in trace.flows("request") if one == flow] == ["s", "t", "t", "t", "f"]


def processed_before_0_13():
    register()
    from vllm.v1.engine.processor import Processor

    text, request = Processor().process_inputs("cmpl-1", [1, 2], 3, 0.0)
    print(text, request.request_id)


def test_the_processor_of_older_versions_is_the_same(record):
    trace = record(processed_before_0_13, SA_PROFILE_LEVEL="verbose")
    assert trace.stdout == "[1, 2] cmpl-1\n" and trace.stderr == ""
    assert len(trace.named("InputProcessor.process_inputs")) == 1


def counted_by_the_client():
    from vllm.v1.engine.async_llm import AsyncLLM

    AsyncLLM._record_stats = staticmethod(lambda stat_loggers, scheduler_stats, iteration_stats: stat_loggers)
    register()
    print(AsyncLLM._record_stats(["logger"], scheduler_stats=None, iteration_stats=None))


def test_metrics_that_the_client_counts_itself_are_the_same(record):
    trace = record(counted_by_the_client, SA_PROFILE_LEVEL="verbose")
    assert trace.stdout == "['logger']\n" and len(trace.named("StatLoggerManager.record")) == 1


def several_answers():
    from test_vllm_frontend import serve

    async def scenario(server):
        parent = SimpleNamespace(request_id="cmpl-1", sampling_params=SimpleNamespace(n=2))
        for index in range(2):
            child = SimpleNamespace(request_id=f"{index}_cmpl-1", prompt_token_ids=[1, 2])
            server.client.output_processor.add_request(child, None, parent, index)

    serve(scenario)


def test_several_answers_have_the_id_of_the_one_that_was_asked(record):
    trace = record(several_answers)
    assert {one["request_id"]: one["external_id"] for one in trace.args("OutputProcessor.add_request")} == {
        "0_cmpl-1": "cmpl-1", "1_cmpl-1": "cmpl-1",
    }


def cached_tokens_of_outputs():
    from test_vllm_frontend import serve
    from vllm.v1.engine import FinishReason

    async def scenario(server):
        processor = server.client.output_processor
        processor.add_request(SimpleNamespace(request_id="a-1", prompt_token_ids=[1, 2, 3]), None)
        for reason in (None, FinishReason.LENGTH):
            output = SimpleNamespace(request_id="a-1", new_token_ids=[5], finish_reason=reason, num_cached_tokens=2)
            processor.process_outputs([output])

    serve(scenario)


def test_cached_tokens_are_those_that_each_output_has(record):
    (span,) = record(cached_tokens_of_outputs).named("request", "X")
    assert (span["args"]["cached_tokens"], span["args"]["output_tokens"]) == (2, 2)


def unprepared():
    from test_vllm_engine import engine, turn
    from vllm.v1.engine import EngineCoreRequest
    from vllm.v1.core.sched.scheduler import Request

    core = engine()
    core.scheduler.add_request, theirs = lambda one: theirs(Request(one)), core.scheduler.add_request
    core.add_request(EngineCoreRequest("a-1", [1, 2, 3]))
    turn(core)


def test_an_engine_that_prepares_requests_itself_is_no_lack(record):
    trace = record(unprepared, FAKE_VLLM_WITHOUT="EngineCore.preprocess_add_request")
    assert trace.stderr == "" and trace.one("request.finished")["prompt_tokens"] == 3


def queued_as_they_came():
    import queue

    register()
    from test_vllm_engine import turn
    from vllm.v1.core.sched.scheduler import Request, Scheduler
    from vllm.v1.engine import EngineCoreRequest
    from vllm.v1.engine.core import EngineCoreProc
    from vllm.v1.executor.executor import Executor

    core = EngineCoreProc(Scheduler(), Executor())
    core.input_queue = queue.Queue()
    core.process_input_sockets([("ADD", EngineCoreRequest("a-1", [1, 2, 3])), ("ABORT", ["b-2"]), ("FAILED", b"")])
    time.sleep(0.02)
    core.add_request(Request(core.input_queue.get()[1]))
    turn(core)


def test_the_wait_of_a_request_that_nobody_prepares_is_a_span(record):
    trace = record(queued_as_they_came, FAKE_VLLM_WITHOUT="EngineCore.preprocess_add_request")
    (wait,), (added,) = trace.named("EngineCore.input_queue"), trace.named("EngineCore.add_request")
    assert trace.stderr == "" and wait["args"] == dict(request_id="a-1")
    assert wait["dur"] >= 20_000 and wait["ts"] + wait["dur"] <= added["ts"]
    assert record(queued_as_they_came).named("EngineCore.input_queue") == []


def crowded():
    """More wait than are followed."""
    import queue

    register()
    from sa_profile._vllm import engine as plugin
    from test_vllm_engine import turn
    from vllm.v1.core.sched.scheduler import Request, Scheduler
    from vllm.v1.engine import EngineCoreRequest
    from vllm.v1.engine.core import EngineCoreProc
    from vllm.v1.executor.executor import Executor

    plugin.MOST_WAITING = 2
    core = EngineCoreProc(Scheduler(), Executor())
    core.input_queue = queue.Queue()
    core.process_input_sockets([("ADD", EngineCoreRequest(f"r-{n}", [1, 2, 3])) for n in range(4)])
    for _ in range(4):
        core.add_request(Request(core.input_queue.get()[1]))
    turn(core)


def test_beyond_the_bound_a_wait_that_nobody_prepares_is_said_by_what_ends_it(record):
    trace = record(crowded, FAKE_VLLM_WITHOUT="EngineCore.preprocess_add_request")
    assert trace.args("EngineCore.input_queue") == [dict(request_id="r-0"), dict(request_id="r-1")]
    added = trace.args("EngineCore.add_request")
    assert [one["request_id"] for one in added if one.get("wait_not_recorded")] == ["r-2", "r-3"] and len(added) == 4


def in_an_older_module():
    """The wrapper hands all that it does not know on to the worker."""
    from test_vllm_worker import scheduled

    register()
    import vllm.v1.worker.worker_base as module

    print(hasattr(module, "WorkerWrapperBase"))
    from vllm.worker.worker_base import WorkerWrapperBase

    made = WorkerWrapperBase()
    made.init_worker([{}])
    made.worker.load()
    made.initialize_from_config([])
    print(made.execute_model(scheduled("a-1")), made.execute_model(scheduled("b-2")))


def test_the_wrapper_of_older_versions_is_the_same(record):
    trace = record(in_an_older_module, FAKE_VLLM_WITHOUT="WorkerWrapperBase")
    assert trace.stdout == "False\nmodel output model output\n" and trace.stderr == ""
    steps = trace.args("WorkerWrapperBase.execute_model")
    assert [one["request_ids"] for one in steps] == [["a-1"], ["b-2"]]
    assert trace.args("model_runner.execute_model") == [{}, {}]
    assert [phase for phase, _ in trace.flows("batch")] == ["t", "t"]


def forget_scopes():
    from vllm.v1 import utils

    del utils._PROFILER_FUNC


def loaded():
    from test_vllm_worker import wrapper

    made = wrapper()
    made.worker.load()
    made.initialize_from_config([])
    return made


def without_scopes():
    from test_vllm_worker import scheduled

    forget_scopes()
    made = loaded()
    print(made.execute_model(scheduled("a-1")), made.execute_model(scheduled("b-2")))
    try:
        made.worker.model_runner.model.forward = lambda tokens: 1 / 0
        made.execute_model(scheduled("c-3"))
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
    """vLLM-Ascend makes a function of the code of `forward`, which must have no free variables, and torch compiles the module."""
    import types

    from vllm.v1.worker.worker_base import Model

    forget_scopes()
    model = loaded().worker.model_runner.model
    copied = types.FunctionType(model.forward.__code__.replace(co_name="cached"), {})
    print(vars(model), model.forward.__func__ is Model.forward, copied(model, []))


def test_the_model_stays_itself(record):
    for start in (None, "paused"):
        assert record(compiled_model, SA_PROFILE_START=start).stdout == "{} True model output\n"


def without_a_context():
    import vllm.v1.worker.worker_base as module

    forget_scopes()
    module.set_forward_context = "no function"
    loaded()
    print(module.set_forward_context)


def test_a_runner_without_the_context_has_no_such_span(record):
    trace = record(without_a_context)
    assert trace.stdout == "no function\n" and trace.stderr.count("\n") == 1


def with_scopes():
    from test_vllm_worker import scheduled

    made = loaded()
    print(made.execute_model(scheduled("a-1")))


def test_a_model_with_scopes_has_no_second_span(record):
    trace = record(with_scopes)
    assert trace.stdout == "model output\n" and trace.stderr == "" and len(trace.named("gpu_model_runner: forward", "X")) == 1


def compiling_grammars():
    from test_vllm_engine import compiling_grammars as run

    run()


def test_a_grammar_has_its_span_under_its_older_name(record):
    trace = record(compiling_grammars, FAKE_VLLM_WITHOUT="StructuredOutputManager._create_grammar")
    assert trace.one("StructuredOutputManager.create_grammar") == dict(request_id="a-1")
