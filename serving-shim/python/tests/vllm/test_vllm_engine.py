"""The engine's side of the plugin, on stand-ins with the shape of vLLM's classes."""

import json
import os
import time

import pytest

from sa_profile.vllm import register


def engine(queue=0, scheduler=None, **executor):
    register()
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.engine.core import EngineCore
    from vllm.v1.executor.executor import Executor

    return EngineCore(scheduler or Scheduler(), Executor(**executor), queue)


def add(core, *ids, prompt=5, tokens=3):
    from vllm.v1.core.sched.scheduler import Request
    from vllm.v1.engine import EngineCoreRequest

    for one in ids:
        core.add_request(Request(EngineCoreRequest(one, list(range(prompt)), tokens)))


def turn(core, most=50):
    """Steps until nothing is left."""
    for _ in range(most):
        if not core.scheduler.has_requests() and not core.batch_queue:
            return
        core.step_fn()
    raise AssertionError("requests are left")


def two_requests():
    core = engine()
    add(core, "a-1", "b-2")
    turn(core)


def killed_in_execute_model():
    kill_in("execute_model")


def killed_in_sample_tokens():
    kill_in("sample_tokens")


def kill_in(call):
    """The second step kills the engine in this call."""
    import signal

    from vllm.v1.executor.executor import Executor

    calls, real = [], getattr(Executor, call)

    def second(executor, *args, **kwargs):
        calls.append(call)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(executor, *args, **kwargs)

    setattr(Executor, call, second)
    core = engine(futures=False, samples=True)
    add(core, "a-1", "b-2")
    turn(core)


@pytest.mark.parametrize("function", [killed_in_execute_model, killed_in_sample_tokens])
def test_an_engine_that_is_killed_in_a_call_of_its_executor_names_the_step(record, function):
    trace = record(function, code=-9)
    trace.merge()
    step = trace.args("scheduler.schedule")[-1]
    assert step["batch"] == 2 and step["request_ids"] == ["a-1", "b-2"]
    call = f"executor.{function.__name__.removeprefix('killed_in_')}"
    open_spans = trace.unfinished()
    assert open_spans[call] == step and set(open_spans) == {"request", "EngineCore.step", call}


def test_each_fact_of_a_step_is_recorded(record):
    trace = record(two_requests)
    first, *others = trace.args("scheduler.schedule")
    assert first == dict(
        tokens=10, batch=1, prefill_requests=2, prefill_tokens=10, decode_requests=0, decode_tokens=0,
        request_ids=["a-1", "b-2"],
    )
    assert [one["decode_tokens"] for one in others] == [2, 2] and [one["batch"] for one in others] == [2, 3]
    updates = trace.args("scheduler.update_from_output")
    assert [one["output_tokens"] for one in updates] == [2, 2, 2] and [one["batch"] for one in updates] == [1, 2, 3]
    shapes = [{key: value for key, value in one.items() if key != "request_ids"} for one in (first, *others)]
    assert trace.args("executor.execute_model") == shapes  # known while it is open; the ids follow from the batch
    assert len(trace.named("EngineCore.step")) == 3
    assert trace.args("requests") == [dict(running=2, waiting=0)] * 2 + [dict(running=0, waiting=0)]
    assert [one["used_percent"] for one in trace.args("kv_cache")] == [2.0, 2.0, 0.0]
    assert trace.args("tokens") == [dict(prefill=10, decode=0), dict(prefill=0, decode=2), dict(prefill=0, decode=2)]
    assert trace.stderr == ""


def test_the_life_of_a_request_is_told(record):
    trace = record(two_requests)
    for request_id in ("a-1", "b-2"):
        life = [one for one in trace.events if one["ph"] == "i" and one["args"]["request_id"] == request_id]
        names = [one["name"] for one in sorted(life, key=lambda one: one["ts"])]
        assert names == ["request.queued", "request.scheduled", "request.first_token", "request.finished"]
        assert life[-1]["args"] == dict(
            request_id=request_id, reason="length", prompt_tokens=5, cached_tokens=0, output_tokens=3, output_steps=3,
            preemptions=0,
        )
    spans = [one["args"] for one in trace.named("request", "X")]
    assert sorted(one["request_id"] for one in spans) == ["a-1", "b-2"]
    assert all(one["reason"] == "length" and one["output_tokens"] == 3 for one in spans)


def slow_engine():
    """A scheduler that takes its time before and after it stamps what it does."""
    register()
    from vllm.v1.core.sched.scheduler import Request, Scheduler
    from vllm.v1.engine import EngineCoreRequest

    scheduler = Scheduler()

    def slowly(function):
        def slow(*args):
            time.sleep(0.02)
            result = function(*args)
            time.sleep(0.03)
            return result

        return slow

    for name in ("add_request", "schedule", "update_from_output"):
        setattr(scheduler, name, slowly(getattr(scheduler, name)))
    core = engine(scheduler=scheduler)
    one = Request(EngineCoreRequest("a-1", [1, 2], 3))
    core.add_request(one)
    outputs = [core.step_fn()[0][0].timestamp for _ in range(3)]
    stamps = [event.timestamp for event in one.events] + [outputs[0], outputs[-1]]
    print(json.dumps([stamp * 1e6 for stamp in stamps]))


def test_events_stand_at_vllms_own_stamps(record):
    trace = record(slow_engine)
    stamps = json.loads(trace.stdout)
    names = ["request.queued", "request.scheduled", "request.first_token", "request.finished"]
    events = [trace.named(name)[0]["ts"] for name in names]
    # Both from one clock: what a merge takes off is the same for all.
    first = events[0] - stamps[0]
    for name, event, stamp in zip(names, events, stamps, strict=True):
        assert abs(event - stamp - first) < 1, name


def without_stamps():
    register()
    from vllm.v1.core.sched.scheduler import Scheduler

    core = engine(scheduler=Scheduler(log_stats=False))
    add(core, "a-1")
    turn(core)


def test_without_stamps_the_life_of_a_request_is_told(record):
    trace = record(without_stamps)
    life = sorted((one for one in trace.events if one["ph"] == "i"), key=lambda one: one["ts"])
    assert [one["name"] for one in life] == ["request.queued", "request.scheduled", "request.first_token", "request.finished"]


def test_requests_and_batches_are_linked(record):
    trace = record(two_requests)
    phases = [phase for phase, _ in trace.flows("request")]
    assert phases == ["t", "t", "t", "t"], "a step where the engine gets it, and one where it is scheduled, for each"
    assert len({flow for _, flow in trace.flows("request")}) == 2
    batches = trace.flows("batch")
    assert [phase for phase, _ in batches] == ["s", "f"] * 3 and len({flow for _, flow in batches}) == 3


def pipelined():
    core = engine(queue=2)
    add(core, "a-1")
    core.step_fn()
    core.step_fn()
    turn(core)


def test_a_future_is_a_batch_until_its_update(record):
    trace = record(pipelined)
    batches = trace.named("batch", "X")
    updates = trace.named("scheduler.update_from_output")
    calls = trace.named("executor.execute_model")
    assert len(batches) >= 3
    for batch in batches:
        number = batch["args"]["batch"]
        update, = [one for one in updates if one.get("args", {}).get("batch") == number]
        call, = [one for one in calls if one.get("args", {}).get("batch") == number]
        ended = batch["ts"] + batch["dur"]
        before = [one["ts"] + one["dur"] for one in updates if one["ts"] < update["ts"]]
        assert call["ts"] <= batch["ts"] and max(before, default=0) <= ended <= update["ts"]
    overlapping = [one for one, two in zip(batches, batches[1:]) if two["ts"] < one["ts"] + one["dur"]]
    assert overlapping, "two are under way at once"


def without_futures():
    core = engine(futures=False)
    add(core, "a-1")
    turn(core)


def test_a_result_that_is_no_future_makes_no_batch_span(record):
    trace = record(without_futures)
    assert not trace.named("batch", "X") and len(trace.named("executor.execute_model")) == 3


def cached():
    from vllm.v1.core.sched.scheduler import Scheduler

    core = engine(scheduler=Scheduler(cached=3))
    add(core, "a-1")
    turn(core)


def test_cached_tokens_are_counted(record):
    trace = record(cached)
    assert trace.one("request.scheduled") == dict(request_id="a-1", cached_tokens=3)
    assert trace.one("request.finished")["cached_tokens"] == 3
    assert trace.args("scheduler.schedule")[0]["prefill_tokens"] == 2


def speculating():
    from vllm.v1.core.sched.scheduler import Scheduler

    core = engine(scheduler=Scheduler(drafts=4))
    add(core, "a-1", tokens=7)
    turn(core)


def test_speculation_is_counted(record):
    trace = record(speculating)
    assert trace.args("speculation") == [dict(drafted=4, accepted=2)] * 2
    assert trace.args("accepted_by_position") == [{"1": 1, "2": 1, "3": 0, "4": 0}] * 2
    assert [one.get("accepted") for one in trace.args("scheduler.update_from_output")] == [None, 2, 2]
    assert [one["decode_tokens"] for one in trace.args("scheduler.schedule")] == [0, 5, 5]


def evicting():
    from vllm.v1.core.sched.scheduler import Scheduler

    core = engine(scheduler=Scheduler(cached=3))
    add(core, "a-1", tokens=2)
    turn(core)
    add(core, "b-2", "c-3", prompt=6, tokens=2)
    turn(core)


def test_the_prefix_cache_is_counted(record):
    trace = record(evicting)
    assert trace.args("prefix_cache") == [dict(queries=5, hits=3, evictions=0), dict(queries=17, hits=9, evictions=1)]


def evicting_on_demand():
    """Blocks that are given up for new ones, and because somebody asks for it."""
    from vllm.v1.core.sched.scheduler import Scheduler

    core = engine(scheduler=Scheduler(cached=3))
    pool = core.scheduler.kv_cache_manager.block_pool
    per_block = pool._maybe_evict_cached_block
    add(core, "a-1", tokens=2)
    turn(core)
    pool.evict_blocks({50, 51, 52})
    print(pool.get_new_blocks(3), pool._maybe_evict_cached_block == per_block, sorted(vars(pool)))
    add(core, "b-2", tokens=2)
    turn(core)


def test_evictions_are_counted_once_for_many_blocks(record):
    trace = record(evicting_on_demand)
    assert trace.stdout == "[2, 3, 4] True ['cached_block_hash_to_block', 'given']\n", "nothing is done for each block"
    assert [one["evictions"] for one in trace.args("prefix_cache")] == [0, 4]


def evicting_a_checkpoint():
    """Mamba's manager caches two states, and gives a block up itself."""
    from vllm.v1.core.sched.scheduler import Scheduler

    core = engine(scheduler=Scheduler(cached=3))
    add(core, "a-1", tokens=2)
    turn(core)
    (manager,) = core.scheduler.kv_cache_manager.coordinator.single_type_managers
    manager._checkpoints["a-1"] = 50
    for request_id in ("b-2", "a-1", "c-3"):
        manager.cache_blocks(request_id)
    add(core, "b-2", tokens=2)
    turn(core)


def test_a_block_that_its_manager_gives_up_is_counted(record):
    trace = record(evicting_a_checkpoint)
    assert trace.stderr == "" and [one["evictions"] for one in trace.args("prefix_cache")] == [0, 2]


def evicting_while_paused():
    import sa_profile
    from sa_profile._vllm.prefix_cache import PrefixCache
    from vllm.v1.core.sched.scheduler import Scheduler

    scheduler = Scheduler()
    cache, pool = PrefixCache(scheduler), scheduler.kv_cache_manager.block_pool
    print(sa_profile.levels(), pool.get_new_blocks(4), cache.counts["evictions"])


def test_evictions_are_not_counted_while_paused(record):
    assert record(evicting_while_paused, SA_PROFILE_START="paused").stdout == "frozenset() [1, 2, 3, 4] 0\n"


def another_pool():
    from vllm.v1.core.sched.scheduler import Scheduler

    scheduler = Scheduler(cached=3)
    del scheduler.kv_cache_manager.block_pool.cached_block_hash_to_block
    scheduler.kv_cache_manager.block_pool._maybe_evict_cached_block = lambda block: False
    core = engine(scheduler=scheduler)
    add(core, "a-1", tokens=2)
    turn(core)


def test_a_pool_of_another_kind_has_no_evictions(record):
    trace = record(another_pool)
    assert trace.args("prefix_cache") == [dict(queries=5, hits=3)] and trace.stderr == ""


def queued():
    from vllm.v1.engine import EngineCoreRequest

    core = engine()
    ready, _ = core.preprocess_add_request(EngineCoreRequest("a-1", [1, 2, 3]))
    time.sleep(0.02)
    core.add_request(ready)
    turn(core)


def test_the_wait_in_the_input_queue_is_a_span(record):
    trace = record(queued)
    (ready,), (wait,), (added,) = (trace.named(f"EngineCore.{name}") for name in ("preprocess_add_request", "input_queue", "add_request"))
    assert {one["args"]["request_id"] for one in (ready, wait, added)} == {"a-1"}
    assert wait["dur"] >= 20_000 and wait["ts"] >= ready["ts"] and wait["ts"] + wait["dur"] <= added["ts"]


def crowded():
    """More requests wait than are followed, and the engine takes them meanwhile."""
    from vllm.v1.engine import EngineCoreRequest

    from sa_profile._vllm import engine as plugin

    core = engine()
    plugin.MOST_WAITING = 2
    ready = [core.preprocess_add_request(EngineCoreRequest(f"r-{n}", [1], 1))[0] for n in range(4)]
    for one in ready:
        core.add_request(one)
    turn(core)
    core.add_request(core.preprocess_add_request(EngineCoreRequest("r-4", [1], 1))[0])


def test_beyond_the_bound_a_wait_is_not_followed_and_says_so(record):
    trace = record(crowded)
    assert trace.args("EngineCore.input_queue") == [dict(request_id=f"r-{n}") for n in (0, 1, 4)]
    ready = trace.args("EngineCore.preprocess_add_request")
    assert [one["request_id"] for one in ready if one.get("wait_not_recorded")] == ["r-2", "r-3"]
    assert len(trace.named("EngineCore.add_request")) == 5 and trace.stderr == ""


def looping():
    register()
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.engine.core import EngineCoreProc
    from vllm.v1.executor.executor import Executor

    core = EngineCoreProc(Scheduler(), Executor())
    add(core, "a-1")
    core.busy_loop()


def test_an_engines_loop_has_no_holes(record):
    trace = record(looping)
    for name in ("process_input_queue", "step", "post_step"):
        assert len(trace.named(f"EngineCore.{name}")) == 3, name


def compiling_grammars():
    register()
    from vllm.v1.core.sched.scheduler import Request
    from vllm.v1.engine import EngineCoreRequest
    from vllm.v1.structured_output import StructuredOutputManager

    manager, one = StructuredOutputManager(), Request(EngineCoreRequest("a-1", [1]))
    manager.grammar_init(one)
    print(manager.grammar_bitmask({"a-1": one}, {"a-1": 0}, {}))


def test_grammars_and_their_masks_are_spans(record):
    trace = record(compiling_grammars)
    assert trace.stdout == "['grammar of a-1']\n"
    assert trace.one("StructuredOutputManager.create_grammar") == dict(request_id="a-1")
    assert trace.one("StructuredOutputManager.grammar_bitmask") == dict(request_ids=["a-1"])


def sent():
    register()
    from vllm.v1.serial_utils import MsgpackDecoder, MsgpackEncoder

    encoder, buffer = MsgpackEncoder(), bytearray()
    print(MsgpackDecoder().decode(encoder.encode_into([1], buffer)), MsgpackDecoder().decode(encoder.encode([2])))


def test_messages_between_the_processes_are_spans(record):
    trace = record(sent, SA_PROFILE_LEVEL="verbose")
    assert trace.stdout == "[1] [2]\n"
    assert [len(trace.named(f"Msgpack{name}")) for name in ("Encoder.encode", "Encoder.encode_into", "Decoder.decode")] == [1, 1, 2]


def named_while_paused():
    import multiprocessing

    multiprocessing.current_process().name = "EngineCore_DP1"
    engine()


def named_while_it_is_made():
    """As vLLM does it: plugins are loaded within the constructor."""
    import vllm.v1.engine.core  # noqa: F401

    from sa_profile._vllm import names

    names.title = lambda: "EngineCore_DP1"
    register()


@pytest.mark.parametrize("function", [named_while_paused, named_while_it_is_made])
def test_an_engine_that_waits_paused_has_its_name(record, function):
    import subprocess
    import sys
    from pathlib import Path

    trace = record(function, SA_PROFILE_START="paused")
    done = subprocess.run([Path(sys.executable).with_name("sa-profile"), "status", trace.folder], capture_output=True, text=True)
    assert "EngineCore_DP1" in done.stdout, done.stdout + done.stderr


def aborted():
    core = engine()
    add(core, "a-1", "b-2", "c-3")
    core.step_fn()
    core.abort_requests(["a-1", "unknown"])
    from vllm.v1.core.sched.scheduler import RequestStatus

    core.scheduler.finish_requests(None, RequestStatus.FINISHED_ABORTED)
    core.scheduler.finish_requests("b-2", RequestStatus.FINISHED_ABORTED)


def test_aborted_requests_end_once(record):
    finished = record(aborted).args("request.finished")
    assert sorted(one["request_id"] for one in finished) == ["a-1", "b-2", "c-3"]
    assert {one["reason"] for one in finished} == {"abort"} and {one["output_tokens"] for one in finished} == {1}


def failing():
    core = engine()
    add(core, "a-1")
    core.step_fn()
    core.model_executor.fail = ConnectionError("a worker has died")
    try:
        core.step_fn()
    except ConnectionError as error:
        print(error)


def test_a_step_that_fails_fails_as_before_and_says_so(record):
    trace = record(failing)
    assert trace.stdout == "a worker has died\n"
    steps = trace.args("EngineCore.step")
    assert [one.get("error") for one in steps] == [None, "ConnectionError"]
    assert trace.named("batch", "X")[-1]["args"]["error"] == "ConnectionError"
    assert trace.stderr == ""


def rejected():
    core = engine()
    core.scheduler.add_request = lambda request: 1 / 0
    try:
        add(core, "a-1")
    except ZeroDivisionError:
        print("rejected")


def test_a_request_that_is_rejected_ends(record):
    trace = record(rejected)
    assert trace.stdout == "rejected\n" and trace.one("request.finished")["reason"] == "error"


def subclassed():
    """As a plug-in platform does it: a class of its own, with its own step, and an own scheduler."""
    register()
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.engine.core import EngineCore
    from vllm.v1.executor.executor import Executor

    class PlatformScheduler(Scheduler):
        def schedule(self, throttle_prefills=False):
            return super().schedule(throttle_prefills)

    class PlatformCore(EngineCore):
        def step(self):
            scheduled = self.scheduler.schedule()
            output = self.model_executor.execute_model(scheduled).result()
            return self.scheduler.update_from_output(scheduled, output), True

    core = PlatformCore(PlatformScheduler(), Executor())
    add(core, "a-1")
    turn(core)


def subclassed_and_not():
    two_requests()
    subclassed()


def test_a_scheduler_and_one_that_extends_it_are_each_seen_once(record):
    trace = record(subclassed_and_not)
    for name in ("EngineCore.step", "scheduler.schedule", "scheduler.update_from_output"):
        assert len(trace.named(name)) == 6, name
    assert [one["batch"] for one in trace.args("scheduler.schedule")] == [1, 2, 3] * 2
    assert sum(one["output_tokens"] for one in trace.args("scheduler.update_from_output")) == 9


def observed_from_outside():
    import gc
    import weakref

    core = engine()
    seen = [core.scheduler, core.scheduler.kv_cache_manager]
    before = [set(vars(one)) for one in seen]
    add(core, "a-1")
    turn(core)
    print([set(vars(one)) for one in seen] == before)
    seen = [weakref.ref(one) for one in (core, *seen)]
    del core
    gc.collect()
    print([one() for one in seen])


def test_what_is_observed_has_no_attribute_more_and_goes_when_its_engine_does(record):
    """An attribute more of a scheduler would slow its own loops down."""
    trace = record(observed_from_outside)
    assert trace.stdout == "True\n[None, None, None]\n" and len(trace.named("scheduler.schedule")) == 3


def begun_again_under_the_same_id():
    """Its prompt is computed in three steps, of which the last two have one token each and look as those that decode do."""
    core, name = engine(), "a-1"
    for _ in range(2):
        add(core, name, tokens=3)
        for _ in range(2):
            core.scheduler.schedule()
        turn(core)


def test_a_request_prefills_until_it_has_an_output_whoever_had_its_id_before(record):
    steps = record(begun_again_under_the_same_id).args("scheduler.schedule")
    kinds = ["prefill" if one["prefill_requests"] else "decode" for one in steps]
    assert kinds == ["prefill", "prefill", "prefill", "decode", "decode"] * 2, steps


def replaced():
    """As a platform does it that patches the class after the plugins were loaded."""
    register()
    from vllm.v1.engine.core import EngineCore

    theirs = EngineCore.__dict__["step"].__wrapped__
    EngineCore.step = lambda self: theirs(self)
    two_requests()


def test_a_method_replaced_later_is_seen(record):
    assert len(record(replaced).named("EngineCore.step")) == 3


def registered_often():
    for _ in range(3):
        register()
    two_requests()
    import sa_profile._vllm.plugin as plugin

    plugin._registered = False  # another copy of the plugin
    register()
    two_requests()


def test_registering_again_records_nothing_twice(record):
    trace = record(registered_often)
    assert len(trace.named("EngineCore.step")) == 6 and len(trace.named("scheduler.schedule")) == 6


def lacking():
    core = engine()
    del type(core.scheduler).get_kv_cache_usage, type(core.scheduler).get_request_counts
    del type(core.scheduler.kv_cache_manager).usage
    two_requests()


def test_what_a_version_lacks_is_told_once_and_costs_only_its_events(record):
    trace = record(lacking, FAKE_VLLM_WITHOUT="EngineCore.step_with_batch_queue,EngineCore.abort_requests")
    assert trace.stderr.count("EngineCore.step_with_batch_queue") == 1
    assert len(trace.stderr.splitlines()) == 1
    assert len(trace.named("EngineCore.step")) == 3
    assert trace.args("requests")[0] == dict(running=2, waiting=0)
    assert not trace.named("kv_cache")


def strange():
    core = engine()
    schedule = core.scheduler.schedule

    def other(*args):
        output = schedule(*args)
        output.scheduled_cached_reqs = "something else"
        return output

    core.scheduler.schedule = other
    add(core, "a-1")
    turn(core)
    print(core.scheduler.has_requests())


def test_facts_that_are_not_there_cost_no_step(record):
    trace = record(strange)
    assert trace.stdout == "False\n" and "its events are missing" in trace.stderr
    assert len(trace.stderr.splitlines()) <= 3, trace.stderr
    assert len(trace.named("EngineCore.step")) == 3


def test_results_are_what_they_were(record):
    assert record(results).stdout == "True True\n"


def results():
    core = engine()
    theirs = type(core.scheduler).schedule
    add(core, "a-1", tokens=1)
    outputs, ran = core.step_fn()
    same = core.scheduler.schedule.__wrapped__ is theirs
    print(outputs[0].outputs[0].new_token_ids == [5] and ran, same)


def test_paused_records_nothing_and_starts_no_fragment(record):
    trace = record(two_requests, SA_PROFILE_START="paused")
    assert not [one for one in trace.events if one["ph"] != "M"]


def unconfigured():
    core = engine()
    print(hasattr(core.scheduler.schedule, "__wrapped__"), hasattr(type(core).step, "__wrapped__"))
    two_requests()


def test_without_a_variable_nothing_is_wrapped(record):
    trace = record(unconfigured, SA_PROFILE_DIR=None)
    assert trace.stdout == "False False\n" and not trace.folder.exists()


def only_registered():
    engine()


def test_no_file_before_the_first_event(record):
    assert not record(only_registered).folder.exists()


def started_while_paused():
    import subprocess
    import sys
    import time
    from pathlib import Path

    import sa_profile

    engine()
    command = [Path(sys.executable).parent / "sa-profile", "start", os.environ["SA_PROFILE_DIR"]]
    subprocess.run(command, check=True, capture_output=True)
    until = time.monotonic() + 20
    while not sa_profile.levels() and time.monotonic() < until:
        time.sleep(0.01)
    two_requests()


def test_an_engine_that_waits_paused_can_be_switched_on(record):
    trace = record(started_while_paused, SA_PROFILE_START="paused")
    assert [one for one in trace.events if one["ph"] == "X" and one["name"] == "EngineCore.step"]
