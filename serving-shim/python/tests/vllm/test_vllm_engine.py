"""The engine's part of the plugin, with stand-ins for vLLM's classes."""

import contextlib
import gc
import json
import multiprocessing
import os
import signal
import time
import types
import weakref

import pytest
import stand_ins as fake
from sa_profile.vllm import register
from switching import command, switch

LIFE = ["request.queued", "request.scheduled", "request.first_token", "request.finished"]


def kill_in(call):
    """Runs an engine that is killed in this call of its second step."""
    calls, real = [], getattr(fake.Executor, call)

    def second(executor, *args, **kwargs):
        calls.append(call)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(executor, *args, **kwargs)

    setattr(fake.Executor, call, second)
    fake.answer(fake.engine(futures=False, samples=True), "a-1", "b-2")


@pytest.mark.parametrize("call", ["execute_model", "sample_tokens"])
def test_an_engine_killed_in_a_call_of_its_executor_has_the_step_in_its_trace(record, call):
    trace = record(kill_in, call, code=-9)
    trace.merge()
    step = trace.args("scheduler.schedule")[-1]
    assert step["batch"] == 2 and step["request_ids"] == ["a-1", "b-2"]
    open_spans = trace.unfinished()
    assert open_spans[f"executor.{call}"] == step and set(open_spans) == {"request", "EngineCore.step", f"executor.{call}"}


def test_each_step_is_recorded_and_linked(record):
    trace = record(fake.run, "a-1", "b-2")
    first, *others = trace.args("scheduler.schedule")
    assert first == dict(
        tokens=10, batch=1, prefill_requests=2, prefill_tokens=10, decode_requests=0, decode_tokens=0,
        request_ids=["a-1", "b-2"],
    )
    assert [one["decode_tokens"] for one in others] == [2, 2] and [one["batch"] for one in others] == [2, 3]
    updates = trace.args("scheduler.update_from_output")
    assert [one["output_tokens"] for one in updates] == [2, 2, 2] and [one["batch"] for one in updates] == [1, 2, 3]
    shapes = [{key: value for key, value in one.items() if key != "request_ids"} for one in (first, *others)]
    assert trace.args("executor.execute_model") == shapes  # the ids are shown only while it is open; afterwards the batch leads to them
    assert len(trace.named("EngineCore.step")) == 3
    assert trace.args("requests") == [dict(running=2, waiting=0)] * 2 + [dict(running=0, waiting=0)]
    assert [one["used_percent"] for one in trace.args("kv_cache")] == [2.0, 2.0, 0.0]
    assert trace.args("tokens") == [dict(prefill=10, decode=0), dict(prefill=0, decode=2), dict(prefill=0, decode=2)]
    assert trace.stderr == ""
    requests, batches = trace.flows("request"), trace.flows("batch")
    assert [phase for phase, _ in requests] == ["t"] * 4, "a step where the engine gets it, and one where it is scheduled, for each"
    assert len({flow for _, flow in requests}) == 2
    assert [phase for phase, _ in batches] == ["s", "f"] * 3 and len({flow for _, flow in batches}) == 3


@pytest.mark.parametrize("has_stamps", [True, False])
def test_the_lifecycle_of_a_request_is_recorded(record, has_stamps):
    trace = record(fake.run, "a-1", "b-2", log_stats=has_stamps)
    for request_id in ("a-1", "b-2"):
        life = [one for one in trace.events if one["ph"] == "i" and one["args"]["request_id"] == request_id]
        life.sort(key=lambda one: one["ts"])
        assert [one["name"] for one in life] == LIFE
        assert life[-1]["args"] == dict(
            request_id=request_id, reason="length", prompt_tokens=5, cached_tokens=0, output_tokens=3, output_steps=3,
            preemptions=0,
        )
    spans = [one["args"] for one in trace.named("request", "X")]
    assert sorted(one["request_id"] for one in spans) == ["a-1", "b-2"]
    assert all(one["reason"] == "length" and one["output_tokens"] == 3 for one in spans)


def slow_engine():
    """Runs a scheduler that waits before and after it stamps its events."""
    register()
    scheduler = fake.Scheduler()

    def slowly(function):
        def slow(*args):
            time.sleep(0.02)
            result = function(*args)
            time.sleep(0.03)
            return result

        return slow

    for name in ("add_request", "schedule", "update_from_output"):
        setattr(scheduler, name, slowly(getattr(scheduler, name)))
    core, one = fake.engine(scheduler=scheduler), fake.Request(fake.request("a-1"))
    core.add_request(one)
    outputs = [core.step_fn()[0][0].timestamp for _ in range(3)]
    stamps = [event.timestamp for event in one.events] + [outputs[0], outputs[-1]]
    print(json.dumps([stamp * 1e6 for stamp in stamps]))


def test_events_have_vllms_own_times(record):
    trace = record(slow_engine)
    stamps = json.loads(trace.stdout)
    events = [trace.named(name)[0]["ts"] for name in LIFE]
    # Both use the same clock, so the merge subtracts the same base from all of them.
    first = events[0] - stamps[0]
    for name, event, stamp in zip(LIFE, events, stamps, strict=True):
        assert abs(event - stamp - first) < 1, name


def test_at_level_verbose_each_output_of_a_request_is_an_instant(record):
    outputs = record(fake.run, "a-1", tokens=7, drafts=4, SA_PROFILE_LEVEL="verbose").args("request.output")
    assert outputs == [dict(request_id="a-1", tokens=tokens) for tokens in (1, 3, 3)]


def test_a_future_is_a_batch_until_its_update(record):
    trace = record(fake.run, "a-1", queue=2)
    batches = trace.named("batch", "X")
    updates = trace.named("scheduler.update_from_output")
    calls = trace.named("executor.execute_model")
    assert len(batches) >= 3
    for batch in batches:
        (update,), (call,) = ([one for one in all if one.get("args", {}).get("batch") == batch["args"]["batch"]] for all in (updates, calls))
        ended = batch["ts"] + batch["dur"]
        before = [one["ts"] + one["dur"] for one in updates if one["ts"] < update["ts"]]
        assert call["ts"] <= batch["ts"] and max(before, default=0) <= ended <= update["ts"]
    overlapping = [one for one, two in zip(batches, batches[1:]) if two["ts"] < one["ts"] + one["dur"]]
    assert overlapping, "two are under way at once"


def test_a_result_other_than_a_future_has_no_batch_span(record):
    trace = record(fake.run, "a-1", futures=False)
    assert not trace.named("batch", "X") and len(trace.named("executor.execute_model")) == 3


def test_cached_tokens_are_counted(record):
    trace = record(fake.run, "a-1", cached=3)
    assert trace.one("request.scheduled") == dict(request_id="a-1", cached_tokens=3)
    assert trace.one("request.finished")["cached_tokens"] == 3
    assert trace.args("scheduler.schedule")[0]["prefill_tokens"] == 2


def test_speculation_is_counted(record):
    trace = record(fake.run, "a-1", tokens=7, drafts=4)
    assert trace.args("speculation") == [dict(drafted=4, accepted=2)] * 2
    assert trace.args("accepted_by_position") == [{"1": 1, "2": 1, "3": 0, "4": 0}] * 2
    assert [one.get("accepted") for one in trace.args("scheduler.update_from_output")] == [None, 2, 2]
    assert [one["decode_tokens"] for one in trace.args("scheduler.schedule")] == [0, 5, 5]


def loop():
    """Runs an engine's loop, and encodes messages between its process and the server's."""
    core = fake.process()
    fake.add(core, "a-1")
    core.busy_loop()
    encoder, buffer = fake.MsgpackEncoder(), bytearray()
    print(fake.MsgpackDecoder().decode(encoder.encode_into([1], buffer)), fake.MsgpackDecoder().decode(encoder.encode([2])))


def test_an_engines_loop_has_no_gaps(record):
    trace = record(loop, SA_PROFILE_LEVEL="verbose")
    assert trace.stdout == "[1] [2]\n"
    for name in ("process_input_queue", "step", "post_step"):
        assert len(trace.named(f"EngineCore.{name}")) == 3, name
    assert [len(trace.named(f"Msgpack{name}")) for name in ("Encoder.encode", "Encoder.encode_into", "Decoder.decode")] == [1, 1, 2]


@pytest.mark.parametrize("lacking", [None, "StructuredOutputManager._create_grammar"])  # before 0.13 it had another name
def test_grammars_and_their_masks_are_spans(record, lacking):
    trace = record(fake.compile_grammars, FAKE_VLLM_WITHOUT=lacking)
    assert trace.stdout == "['grammar of a-1']\n"
    assert trace.one("StructuredOutputManager.create_grammar") == dict(request_id="a-1")
    assert trace.one("StructuredOutputManager.grammar_bitmask") == dict(request_ids=["a-1"])


def named_while_paused():
    multiprocessing.current_process().name = "EngineCore_DP1"
    fake.engine()


def named_while_it_is_made():
    """Registers the plugin while the engine's constructor runs, because vLLM loads plugins there."""
    from sa_profile._vllm import names

    assert fake.EngineCore
    names.title = lambda: "EngineCore_DP1"
    register()


@pytest.mark.parametrize("function", [named_while_paused, named_while_it_is_made])
def test_a_paused_engine_has_its_name(record, function):
    trace = record(function, SA_PROFILE_START="paused")
    assert "EngineCore_DP1" in command("status", trace.folder)


def abort():
    core = fake.engine()
    fake.add(core, "a-1", "b-2", "c-3")
    core.step_fn()
    core.abort_requests(["a-1", "unknown"])
    core.scheduler.finish_requests(None, fake.RequestStatus.FINISHED_ABORTED)
    core.scheduler.finish_requests("b-2", fake.RequestStatus.FINISHED_ABORTED)


def test_aborted_requests_end_once(record):
    finished = record(abort).args("request.finished")
    assert sorted(one["request_id"] for one in finished) == ["a-1", "b-2", "c-3"]
    assert {one["reason"] for one in finished} == {"abort"} and {one["output_tokens"] for one in finished} == {1}


def observe_from_outside():
    core = fake.engine()
    seen = [core.scheduler, core.scheduler.kv_cache_manager]
    before = [set(vars(one)) for one in seen]
    fake.answer(core, "a-1")
    print([set(vars(one)) for one in seen] == before)
    seen = [weakref.ref(one) for one in (core, *seen)]
    del core
    gc.collect()
    print([one() for one in seen])


def test_observed_objects_get_no_attributes_and_are_freed_with_their_engine(record):
    """A further attribute would slow down the scheduler's own loops."""
    trace = record(observe_from_outside)
    assert trace.stdout == "True\n[None, None, None]\n" and len(trace.named("scheduler.schedule")) == 3


def begin_again_under_the_same_id():
    """Computes a prompt in three steps. The last two compute one token each, like steps that decode."""
    core, name = fake.engine(), "a-1"
    for _ in range(2):
        fake.add(core, name)
        for _ in range(2):
            core.scheduler.schedule()
        fake.turn(core)


def test_a_request_prefills_until_it_has_an_output_even_if_its_id_was_used_before(record):
    steps = record(begin_again_under_the_same_id).args("scheduler.schedule")
    kinds = ["prefill" if one["prefill_requests"] else "decode" for one in steps]
    assert kinds == ["prefill", "prefill", "prefill", "decode", "decode"] * 2, steps


def print_wrappers():
    core = fake.run("a-1")
    print(hasattr(core.scheduler.schedule, "__wrapped__"), hasattr(type(core).step, "__wrapped__"))


def test_without_a_variable_nothing_is_wrapped(record):
    trace = record(print_wrappers, SA_PROFILE_DIR=None)
    assert trace.stdout == "False False\n" and not trace.folder.exists()


def test_no_file_is_written_before_the_first_event(record):
    assert not record(fake.engine).folder.exists()


def evict():
    """Evicts blocks: for new ones, by an explicit call, and in Mamba's state manager, which caches two states and evicts one."""
    core = fake.run("a-1", tokens=2, cached=3)
    manager = core.scheduler.kv_cache_manager
    pool = manager.block_pool
    per_block = pool._maybe_evict_cached_block
    pool.evict_blocks({50, 51, 52})
    print(pool.get_new_blocks(3), pool._maybe_evict_cached_block == per_block, sorted(vars(pool)))
    fake.answer(core, "b-2", "c-3", prompt=6, tokens=2)
    (states,) = manager.coordinator.single_type_managers
    states._checkpoints["a-1"] = 60
    for request_id in ("b-2", "a-1", "c-3"):
        states.cache_blocks(request_id)
    fake.answer(core, "d-4", tokens=2)


def test_the_prefix_cache_is_counted_once_for_many_blocks(record):
    trace = record(evict)
    assert trace.stdout == "[2, 3, 4] True ['cached_block_hash_to_block', 'given']\n", "nothing is done for each block"
    counts = [tuple(one.values()) for one in trace.args("prefix_cache")]
    assert counts == [(5, 3, 0), (17, 9, 5), (22, 12, 6)] and list(trace.args("prefix_cache")[0]) == ["queries", "hits", "evictions"]


def crowd():
    """Lets more requests wait than are followed. The engine receives them meanwhile."""
    from sa_profile._vllm import engine as plugin

    core = fake.engine()
    plugin.MAX_WAITING = 2
    ready = [core.preprocess_add_request(fake.request(f"r-{n}"))[0] for n in range(4)]
    time.sleep(0.02)
    for one in ready:
        core.add_request(one)
    core.add_request(core.preprocess_add_request(fake.request("r-4"))[0])


def test_the_wait_in_the_input_queue_is_a_span_and_one_beyond_the_limit_is_marked(record):
    trace = record(crowd)
    ready, waits, added = (trace.named(f"EngineCore.{name}") for name in ("preprocess_add_request", "input_queue", "add_request"))
    assert [one["args"] for one in waits] == [dict(request_id=f"r-{n}") for n in (0, 1, 4)]
    assert waits[0]["dur"] >= 20_000 and waits[0]["ts"] >= ready[0]["ts"] and waits[0]["ts"] + waits[0]["dur"] <= added[0]["ts"]
    assert [one["args"]["request_id"] for one in ready if one["args"].get("wait_not_recorded")] == ["r-2", "r-3"]
    assert len(added) == 5 and trace.stderr == ""


def trouble():
    """Makes the scheduler reject a request, and then a worker die."""
    core = fake.engine()
    accepts, core.scheduler.add_request = core.scheduler.add_request, lambda request: 1 / 0
    with contextlib.suppress(ZeroDivisionError):
        fake.add(core, "a-1")
    core.scheduler.add_request = accepts
    fake.add(core, "b-2")
    core.step_fn()
    core.model_executor.fail = ConnectionError("a worker has died")
    try:
        core.step_fn()
    except ConnectionError as error:
        print(error)


def test_failures_are_unchanged_and_recorded(record):
    trace = record(trouble)
    assert trace.stdout == "a worker has died\n" and trace.stderr == ""
    assert [(one["request_id"], one["reason"]) for one in trace.args("request.finished")] == [("a-1", "error")]
    assert [one.get("error") for one in trace.args("EngineCore.step")] == [None, "ConnectionError"]
    assert trace.named("batch", "X")[-1]["args"]["error"] == "ConnectionError"


def extended():
    """Uses the classes of a plug-in platform: an engine with its own step, and its own scheduler."""
    register()

    class PlatformScheduler(fake.Scheduler):
        def schedule(self, throttle_prefills=False):
            return super().schedule(throttle_prefills)

    class PlatformCore(fake.EngineCore):
        def step(self):
            scheduled = self.scheduler.schedule()
            output = self.model_executor.execute_model(scheduled).result()
            return self.scheduler.update_from_output(scheduled, output), True

    fake.answer(PlatformCore(PlatformScheduler(), fake.Executor()), "a-1")


def patched():
    """Patches one object, as a platform may."""
    register()
    scheduler = fake.Scheduler()
    for name in ("schedule", "update_from_output"):
        theirs = getattr(fake.Scheduler, name)
        setattr(scheduler, name, types.MethodType(lambda self, *args, theirs=theirs: theirs(self, *args), scheduler))
    fake.answer(fake.engine(scheduler=scheduler), "a-1")


def replaced():
    """Patches the class after the plugins were loaded, as a platform may."""
    register()
    theirs = fake.EngineCore.__dict__["step"].__wrapped__
    fake.EngineCore.step = lambda self: theirs(self)
    fake.run("a-1")


def registered_often():
    from sa_profile._vllm import plugin

    for _ in range(3):
        register()
    plugin._registered = False  # another copy of the plugin
    fake.run("a-1")


@pytest.mark.parametrize("program", [extended, patched, replaced, registered_often])
def test_each_call_is_recorded_once(record, program):
    trace = record(program)
    assert len(trace.named("EngineCore.step")) == 3 and trace.stderr == ""
    assert [one["batch"] for one in trace.args("scheduler.schedule")] == [1, 2, 3]
    assert [one["output_tokens"] for one in trace.args("scheduler.update_from_output")] == [1, 1, 1]


def lack():
    core = fake.engine()
    del type(core.scheduler).get_kv_cache_usage, type(core.scheduler).get_request_counts
    del type(core.scheduler.kv_cache_manager).usage
    type(core.scheduler).finish_requests = None
    fake.run("a-1")


def test_missing_functions_are_reported_once_and_cost_only_their_events(record):
    trace = record(lack, FAKE_VLLM_WITHOUT="EngineCore.step_with_batch_queue")
    said = "sa_profile: vLLM plugin: this vLLM has no {}: its spans are missing\n"
    assert trace.stderr == said.format("EngineCore.step_with_batch_queue") + said.format("Scheduler.finish_requests")
    assert len(trace.named("EngineCore.step")) == 3
    assert trace.args("requests")[0] == dict(running=1, waiting=0)
    assert not trace.named("kv_cache")


def answer_strangely():
    core = fake.engine()
    schedule = core.scheduler.schedule

    def other(*args):
        output = schedule(*args)
        output.scheduled_cached_reqs = "something else"
        return output

    core.scheduler.schedule = other
    fake.answer(core, "a-1")


def test_missing_data_costs_no_step(record):
    trace = record(answer_strangely)
    assert "its events are missing" in trace.stderr
    assert len(trace.stderr.splitlines()) <= 3, trace.stderr
    assert len(trace.named("EngineCore.step")) == 3


def start_while_paused():
    fake.run("a-1")
    switch("start")
    fake.run("b-2")


def test_a_paused_engine_records_nothing_and_can_be_switched_on(record):
    trace = record(start_while_paused, SA_PROFILE_START="paused")
    assert len(trace.named("EngineCore.step", "X")) == 3
    assert {one["args"]["request_id"] for one in trace.events if "request_id" in one.get("args", {})} == {"b-2"}
