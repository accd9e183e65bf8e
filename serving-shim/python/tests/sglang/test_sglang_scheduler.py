"""The scheduler's part of the plugin, with stand-ins for SGLang's classes."""

import json
import os
import signal

import pytest
import sglang_server as fake
from sa_profile.sglang import register

LIFE = ["request.queued", "request.scheduled", "request.first_token", "request.finished"]
NORMAL = dict(disable_overlap_schedule=True)


def life(trace, rid):
    """Returns the instants of a request, ordered by time."""
    found = [one for one in trace.events if one["ph"] == "i" and one.get("args", {}).get("request_id") == rid]
    return sorted(found, key=lambda one: one["ts"])


def by_batch(trace, name):
    """Returns the args of the spans of this name, by the number of their batch."""
    return {one["batch"]: one for one in trace.args(name)}


# Batches


@pytest.mark.parametrize("loop", [{}, NORMAL])
def test_each_batch_is_recorded(record, loop):
    trace = record(fake.schedule, "a-1", "b-2", **loop)
    assert trace.stderr == "" and trace.process_names() == ["sglang::scheduler"]
    first, *others = trace.args("Scheduler.run_batch")
    assert first == dict(
        batch=1, mode="extend", tokens=10, prefill_requests=2, prefill_tokens=10, decode_requests=0, decode_tokens=0, request_ids=["a-1", "b-2"],
    )  # fmt: skip
    assert [(one["batch"], one["mode"], one["decode_tokens"], one["request_ids"]) for one in others] == [
        (2, "decode", 2, ["a-1", "b-2"]), (3, "decode", 2, ["a-1", "b-2"]),
    ]  # fmt: skip
    results = trace.args("Scheduler.process_batch_result")
    assert [(one["batch"], one["outputs"], one["output_tokens"], one["graph"]) for one in results] == [(1, 2, 2, False), (2, 2, 2, True), (3, 2, 2, True)]
    assert len(trace.named("Scheduler.schedule")) == 3
    assert trace.args("tokens") == [dict(prefill=10, decode=0), dict(prefill=0, decode=2), dict(prefill=0, decode=2)]
    assert trace.args("requests")[-1] == dict(running=0, waiting=0)


def test_the_overlap_loop_processes_a_result_after_the_next_launch(record):
    trace = record(fake.schedule, "a-1", tokens=5)
    launches, results = trace.named("Scheduler.run_batch"), trace.named("Scheduler.process_batch_result")
    assert [one["args"]["batch"] for one in results] == [1, 2, 3, 4, 5]
    for launch, result in zip(launches[1:], results):
        assert launch["ts"] + launch["dur"] <= result["ts"]
    trace.merge()
    batches = trace.named("batch", "X")
    assert len(batches) == 5
    for launch, result, batch in zip(trace.named("Scheduler.run_batch"), trace.named("Scheduler.process_batch_result"), batches):
        assert launch["ts"] + launch["dur"] <= batch["ts"] + 1 and batch["ts"] + batch["dur"] <= result["ts"] + 1


def test_the_normal_loop_has_no_batches_in_flight(record):
    assert not record(fake.schedule, "a-1", **NORMAL).named("batch")


def test_a_request_that_ends_with_a_stop_token_is_in_one_further_batch(record):
    """The overlap loop has launched it before it knew. It has no output there."""
    trace = record(fake.schedule, "a-1", tokens=9, custom_params=dict(stop_at=3))
    results = trace.args("Scheduler.process_batch_result")
    assert [one["output_tokens"] for one in results] == [1, 1, 1, 0]
    assert [one["name"] for one in life(trace, "a-1")] == LIFE
    assert life(trace, "a-1")[-1]["args"]["reason"] == "stop" and life(trace, "a-1")[-1]["args"]["output_tokens"] == 3


def test_a_long_prompt_is_computed_in_chunks(record):
    trace = record(fake.schedule, "a-1", prompt=100, tokens=2)
    assert [(one["mode"], one["prefill_tokens"]) for one in trace.args("Scheduler.run_batch")] == [("extend", 64), ("extend", 36), ("decode", 0)]
    assert [one["name"] for one in life(trace, "a-1")] == LIFE
    assert [one["output_tokens"] for one in trace.args("Scheduler.process_batch_result")] == [0, 1, 1]


@pytest.mark.parametrize("loop", [{}, NORMAL])
def test_a_mixed_batch_extends_and_decodes(record, loop):
    trace = record(fake.schedule, "a-1", "b-2", "c-3", prompt=30, tokens=3, enable_mixed_chunk=True, **loop)
    mixed = next(one for one in trace.args("Scheduler.run_batch") if one["mode"] == "mixed")
    assert (mixed["prefill_requests"], mixed["prefill_tokens"], mixed["decode_requests"], mixed["decode_tokens"]) == (1, 26, 2, 2)
    assert mixed["tokens"] == 28 and len(mixed["request_ids"]) == 3
    assert all(life(trace, rid)[-1]["args"]["output_tokens"] == 3 for rid in ("a-1", "b-2", "c-3"))


def idle_turns():
    made = fake.scheduler()
    for _ in range(1000):
        made.turn()
    fake.answer(made, "a-1")
    for _ in range(1000):
        made.turn()


def test_turns_without_a_batch_write_nothing(record):
    trace = record(idle_turns)
    names = {one["name"] for one in trace.events if one["ph"] in "XiC"}
    assert len(trace.named("Scheduler.schedule")) == 3 and len(trace.named("Scheduler.run_batch")) == 3
    assert not names & {"Scheduler.process_input_requests", "Scheduler.on_idle"}
    assert sum(path.stat().st_size for path in trace.folder.rglob("*") if path.suffix == ".jsonl") < 20_000


def killed_in_a_batch():
    made = fake.scheduler()
    fake.send(made, fake.request("a-1"), fake.request("b-2"))
    made.turn()
    made.model_worker.model_runner.sample = lambda *_args: os.kill(os.getpid(), signal.SIGKILL)
    made.turn()


def test_a_scheduler_killed_in_a_batch_has_it_in_its_trace(record):
    trace = record(killed_in_a_batch, code=-9)
    trace.merge()
    unfinished = trace.unfinished()
    assert unfinished["Scheduler.run_batch"]["batch"] == 2 and unfinished["Scheduler.run_batch"]["request_ids"] == ["a-1", "b-2"]
    assert "request" in unfinished


# Speculation


@pytest.mark.parametrize("loop", [{}, NORMAL])
def test_speculation_is_counted(record, loop):
    trace = record(fake.schedule, "a-1", "b-2", tokens=5, speculative_algorithm="EAGLE", speculative_num_draft_tokens=4, **loop)
    prefill, *decodes = trace.args("Scheduler.process_batch_result")
    assert "drafted" not in prefill
    counted = [one for one in decodes if one["output_tokens"]]
    assert [(one["drafted"], one["accepted"], one["output_tokens"]) for one in counted] == [(6, 2, 4), (6, 2, 4)]
    assert trace.args("speculation")[0] == dict(drafted=6, accepted=2)
    assert life(trace, "a-1")[-1]["args"]["output_tokens"] == 5


def test_tokens_after_the_last_one_do_not_count(record):
    """A step may accept more tokens than the request may have."""
    trace = record(fake.schedule, "a-1", tokens=4, speculative_algorithm="EAGLE", speculative_num_draft_tokens=4)
    assert life(trace, "a-1")[-1]["args"]["output_tokens"] == 4


# Requests


def stamped():
    """Prints SGLang's stamps of a request in us."""
    made, stats = fake.scheduler(), []
    add = made._add_request_to_queue
    made._add_request_to_queue = lambda req, **more: (stats.append(req.time_stats), add(req, **more))
    fake.answer(made, "a-1", tokens=4)
    names = ("wait_queue_entry_time", "forward_entry_time", "prefill_finished_time", "completion_time")
    print(json.dumps([1e6 * getattr(stats[0], name) for name in names]))


def test_moments_of_a_request_are_at_sglangs_stamps(record):
    trace = record(stamped)
    events, stamps = life(trace, "a-1"), json.loads(trace.stdout)
    assert [one["name"] for one in events] == LIFE
    first = events[0]["ts"] - stamps[0]
    for event, stamp in zip(events, stamps, strict=True):
        assert abs(event["ts"] - stamp - first) < 1, event["name"]


def test_the_life_of_a_request(record):
    trace = record(fake.schedule, "a-1", "b-2")
    for rid in ("a-1", "b-2"):
        events = life(trace, rid)
        assert [one["name"] for one in events] == LIFE
        assert events[-1]["args"] == dict(
            request_id=rid, reason="length", prompt_tokens=5, cached_tokens=0, output_tokens=3, output_steps=3, preemptions=0,
        )  # fmt: skip
    assert sorted(one["args"]["request_id"] for one in trace.named("request", "X")) == ["a-1", "b-2"]
    flows = trace.flows("request")
    assert len({flow for _, flow in flows}) == 2 and {phase for phase, _ in flows} == {"t"}


def test_cached_tokens_are_counted_by_tier(record):
    trace = record(fake.schedule, "a-1", prompt=20, cached=dict(device=4, host=3, storage=2))
    scheduled = trace.one("request.scheduled")
    assert scheduled["cached_tokens"] == 9
    assert [scheduled[f"cached_{tier}_tokens"] for tier in ("device", "host", "storage")] == [4, 3, 2]
    assert trace.args("Scheduler.run_batch")[0]["prefill_tokens"] == 11
    assert trace.args("prefix_cache")[-1] == dict(queries=20, hits=9, evictions=0)


def test_evictions_are_counted(record):
    trace = record(fake.schedule, *(f"r-{n}" for n in range(6)), prompt=20, tokens=4, max_total_tokens=60)
    assert trace.args("prefix_cache")[-1]["evictions"] > 0


@pytest.mark.parametrize("loop", [{}, NORMAL])
def test_a_retracted_request_waits_and_is_resumed(record, loop):
    trace = record(fake.schedule, "a-1", "b-2", "c-3", prompt=7, tokens=8, max_total_tokens=30, **loop)
    events = life(trace, "c-3")
    assert [one["name"] for one in events] == [*LIFE[:3], "request.preempted", "request.resumed", "request.finished"]
    assert events[-1]["args"]["preemptions"] == 1 and events[-1]["args"]["output_tokens"] == 8
    assert all([one["name"] for one in life(trace, rid)] == LIFE for rid in ("a-1", "b-2"))
    assert max(one["waiting"] for one in trace.args("requests")) == 1


def aborted():
    """Aborts one request that runs and one that waits."""
    made = fake.scheduler(max_running_requests=2)
    abort = fake.module("managers.io_struct").AbortReq
    fake.send(made, *(fake.request(rid, tokens=20) for rid in ("a-1", "b-2", "c-3")))
    made.turn()
    made.turn()
    fake.send(made, abort(rid="a-1"), abort(rid="c-3"))
    fake.turn(made)


def test_aborted_requests_end(record):
    trace = record(aborted)
    assert {one["request_id"]: one["reason"] for one in trace.args("request.finished")} == {"a-1": "abort", "b-2": "length", "c-3": "abort"}
    assert [one["name"] for one in life(trace, "c-3")] == ["request.queued", "request.finished"]
    assert trace.stderr == ""


def waits_for_a_grammar():
    """Answers a request while another one waits for its grammar."""
    made = fake.scheduler(**NORMAL)
    fake.send(made, fake.request("a-1", tokens=5))
    made.turn()
    fake.send(made, fake.request("b-2", json_schema="{}"))
    fake.turn(made)


def test_requests_that_wait_for_their_grammar_are_counted(record):
    trace = record(waits_for_a_grammar)
    assert trace.args("grammar_queue") == [dict(waiting=1), dict(waiting=0)]
    assert [one["name"] for one in life(trace, "b-2")] == LIFE and trace.stderr == ""


# Ranks


def test_the_first_rank_records_requests_and_links_the_others(record):
    trace = record(fake.schedule, "a-1", ranks=dict(tp_rank=0), tp_size=2)
    assert trace.process_names() == ["sglang::scheduler_TP0"]
    assert len(trace.named("request", "X")) + len(trace.named("request", "b")) == 1
    assert "s" in [phase for phase, _ in trace.flows("batch")]


def test_other_ranks_record_only_batches(record):
    trace = record(fake.schedule, "a-1", ranks=dict(tp_rank=1), tp_size=2)
    assert trace.process_names() == ["sglang::scheduler_TP1"]
    names = {one["name"] for one in trace.events if one["ph"] in "XiCbe"}
    assert "Scheduler.run_batch" in names and len(trace.args("Scheduler.run_batch")) == 3
    assert not names & {"request", *LIFE, "requests", "tokens", "kv_cache", "Scheduler.schedule", "Scheduler.process_batch_result"}
    assert [phase for phase, _ in trace.flows("batch")] == ["t"] * 3
    first = record(fake.schedule, "a-1", ranks=dict(tp_rank=0), tp_size=2)
    assert {flow for _, flow in trace.flows("batch")} == {flow for _, flow in first.flows("batch")}


def idle_batches(loop):
    """Runs a data parallel rank without requests while another one has some."""
    made = fake.scheduler(dp_rank=1, dp_size=2, **loop)
    made.dp_attn_adapter.has_busy_peers = True
    for _ in range(3):
        made.turn()
    made.dp_attn_adapter.has_busy_peers = False
    fake.turn(made)


@pytest.mark.parametrize("loop", [{}, NORMAL])
def test_idle_batches_of_a_rank_are_recorded_as_such(record, loop):
    trace = record(idle_batches, loop)
    assert trace.stderr == "" and trace.process_names() == ["sglang::scheduler_DP1"]
    batches = trace.args("Scheduler.run_batch")
    assert [(one["batch"], one["mode"], one["tokens"]) for one in batches] == [(1, "idle", 0), (2, "idle", 0), (3, "idle", 0)]
    assert not any(one.get("decode_requests") or one.get("prefill_requests") for one in batches)


@pytest.mark.parametrize("loop", [{}, NORMAL])
def test_a_request_preempted_by_one_of_higher_priority_is_resumed(record, loop):
    """SGLang puts it back in the queue as it does for a new request."""
    trace = record(preempted, loop)
    assert [one["name"] for one in life(trace, "a-1")] == [*LIFE[:3], "request.preempted", "request.resumed", "request.finished"]
    assert trace.args("requests")[-1] == dict(running=0, waiting=0) and trace.stderr == ""


def preempted(loop):
    """Makes a running request wait again as SGLang's priority scheduling does."""
    made = fake.scheduler(**NORMAL)
    fake.send(made, fake.request("a-1", tokens=6))
    made.turn()
    made.turn()
    (req,) = made.running_batch.reqs
    made.running_batch.release_req(0, 0)
    made.running_batch.filter_batch(reqs_to_exclude=[req])
    made.last_batch = None
    made._add_request_to_queue(req)
    fake.turn(made)


def in_a_pipeline():
    """Processes results as a pipeline does: another rank has computed them, so they are other objects than `run_batch` returned."""
    import gc
    import weakref

    made = fake.scheduler(pp_size=2, **NORMAL)
    process, kept = made.process_batch_result, []

    def processed(batch, result):
        kept.append(weakref.ref(result))
        process(batch, type(result)(**{name: getattr(result, name) for name in result.__dataclass_fields__}))

    made.process_batch_result = processed
    fake.answer(made, "a-1", tokens=4)
    del made
    gc.collect()
    print(sum(one() is not None for one in kept))


def test_results_of_a_pipeline_belong_to_their_batches_and_are_freed(record):
    trace = record(in_a_pipeline)
    assert trace.stdout == "0\n" and trace.stderr == ""
    assert [one["batch"] for one in trace.args("Scheduler.process_batch_result")] == [1, 2, 3, 4]


def nested():
    """Runs a batch of requests whose prompt another server has computed. SGLang then runs an idle batch in the same call, if other ranks compute one."""
    made = fake.scheduler(**NORMAL)
    forward, batches = made.model_worker.forward_batch_generation, []

    def run_idle(batch):
        made.model_worker.forward_batch_generation = forward
        batches.append(batch)
        idle = type(batch)(reqs=[], forward_mode=fake.module("model_executor.forward_batch_info").ForwardMode.IDLE)
        made.run_batch(idle)
        return forward(batch)

    made.model_worker.forward_batch_generation = run_idle
    fake.answer(made, "a-1")


def test_a_batch_that_runs_inside_another_one_is_recorded(record):
    trace = record(nested)
    assert trace.stderr == ""
    assert sorted((one["batch"], one["mode"]) for one in trace.args("Scheduler.run_batch"))[:2] == [(1, "extend"), (2, "idle")]


def with_a_cache_of_two_kinds():
    """SGLang's caches for models with windows or states have no single size."""
    made = fake.scheduler(**NORMAL)

    def evictable_size():
        raise NotImplementedError

    made.tree_cache.evictable_size = evictable_size
    fake.answer(made, "a-1", "b-2")


def test_a_cache_of_two_kinds_has_no_use_in_percent(record):
    trace = record(with_a_cache_of_two_kinds)
    assert trace.stderr == "" and trace.args("kv_cache") == []
    assert max(one["running"] for one in trace.args("requests")) == 2
    assert trace.args("prefix_cache")[-1]["queries"] == 10


# Requests that start or end outside of a batch


def started_without_a_batch():
    """Starts a request as a decode server does: it is queued once its prompt is transferred, and no batch extends it."""
    made = fake.scheduler(**NORMAL)
    times = fake.module("observability.req_time_stats").SchedulerReqTimeStats
    stamp, times.set_wait_queue_entry_time = times.set_wait_queue_entry_time, lambda _stats: None
    fake.send(made, fake.request("a-1"))
    made.ingest_requests()

    def run_unseen(batch):
        del made.run_batch
        return type(made).run_batch.__wrapped__(made, batch)

    made.run_batch = run_unseen
    stamp(made.waiting_queue[0].time_stats)
    fake.turn(made)


def test_a_request_that_no_batch_extends_is_queued_and_scheduled(record):
    trace = record(started_without_a_batch)
    assert [one["name"] for one in life(trace, "a-1")] == LIFE and trace.stderr == ""
    assert [one["mode"] for one in trace.args("Scheduler.run_batch")] == ["decode", "decode"]
    assert max(one["running"] for one in trace.args("requests")) == 1


def sent_without_a_batch():
    """Ends requests as a prefill server does once their KV cache is transferred."""
    made = fake.scheduler(**NORMAL)
    fake.send(made, fake.request("a-1", tokens=6))
    made.turn()
    (req,) = made.running_batch.reqs or made.last_batch.reqs
    req.finished_reason = fake.module("managers.schedule_batch").FINISH_LENGTH(length=0)
    made.running_batch, made.last_batch = type(made.last_batch)(reqs=[]), None
    made.output_streamer.stream_output([req], False)


def with_a_transferred_token():
    """Sends the first token of a request, which a prefill server has computed, before the first batch."""
    made = fake.scheduler(**NORMAL)
    fake.send(made, fake.request("a-1"))
    made.ingest_requests()
    (req,) = made.waiting_queue
    req.output_ids.append(7)
    made.output_streamer.stream_output([req], False)
    fake.turn(made)


def test_a_transferred_token_is_the_first_one(record):
    trace = record(with_a_transferred_token)
    (first,) = trace.named("request.first_token")
    assert first["ts"] < trace.named("Scheduler.run_batch")[0]["ts"] and trace.stderr == ""
    ended = trace.one("request.finished")
    assert (ended["output_tokens"], ended["output_steps"]) == (3, 3)


def test_a_request_that_ends_after_its_last_batch_ends(record):
    trace = record(sent_without_a_batch)
    assert life(trace, "a-1")[-1]["name"] == "request.finished" and trace.stderr == ""
    assert [(one["reason"], one["output_tokens"]) for one in trace.args("request.finished")] == [("length", 1)]


def refused():
    """Refuses a request as versions before 0.5.23 do if too many wait."""
    made = fake.scheduler(**NORMAL)
    abort = fake.module("managers.io_struct").AbortReq
    made._abort_on_queued_limit = lambda req: made.send_to_tokenizer.send_output(abort(rid=req.rid), req)
    queue = made.waiting_queue
    made.grammar_manager.process_req_with_grammar = lambda req: made._abort_on_queued_limit(req) or True
    fake.send(made, fake.request("a-1"))
    made.turn()
    print(len(queue))


def test_a_refused_request_ends(record):
    trace = record(refused, FAKE_SGLANG_WITHOUT="managers.scheduler:Scheduler.send_abort_output")
    assert [(one["request_id"], one["reason"]) for one in trace.args("request.finished")] == [("a-1", "abort")]
    assert trace.stdout == "0\n" and trace.stderr == ""


# Recording that starts late, and profile requests


def switch(cause):
    """Switches recording, and waits until this process has done it."""
    import time

    import sa_profile
    from sa_profile._hooks import control

    assert control.switch(cause)
    until = time.monotonic() + 5
    while sa_profile.is_enabled() != (cause == "start") and time.monotonic() < until:
        time.sleep(0.01)


def switched_on_in_the_middle(loop):
    made = fake.scheduler(**loop)
    fake.send(made, fake.request("a-1", tokens=8), fake.request("b-2", tokens=8))
    for _ in range(4):
        made.turn()
    switch("start")
    fake.turn(made)


@pytest.mark.parametrize("loop", [{}, NORMAL])
def test_requests_that_run_when_recording_starts_are_counted(record, loop):
    trace = record(switched_on_in_the_middle, loop, SA_PROFILE_START="paused")
    assert trace.stderr == ""
    assert [(one["request_id"], one["output_tokens"]) for one in trace.args("request.finished")] == [("a-1", 8), ("b-2", 8)]
    assert max(one["running"] for one in trace.args("requests")) == 2 and trace.args("requests")[-1] == dict(running=0, waiting=0)
    assert not trace.named("request.first_token")


def paused_under_load(loop):
    """Pauses the recording for 300 ms in which the scheduler's loop is never idle."""
    import time

    import sa_profile
    from sa_profile._hooks import control

    made = fake.scheduler(**loop)
    fake.send(made, fake.request("a-1", tokens=100_000))
    made.turn()
    for cause, is_on in (("stop", False), ("start", True)):
        assert control.switch(cause)
        until = time.monotonic() + 5
        while sa_profile.is_enabled() != is_on and time.monotonic() < until:
            made.turn()
        if not is_on:
            found = next(iter(scheduler_observers()))
            found.requests.all_finished("stop")  # as if only requests that are not recorded were left
            until = time.monotonic() + 0.3
            while time.monotonic() < until:
                made.turn()
    for _ in range(9):
        made.turn()


def scheduler_observers():
    from sa_profile._sglang import scheduler

    return scheduler._observers.values()


@pytest.mark.parametrize("loop", [{}, NORMAL])
def test_the_choice_of_a_batch_does_not_last_as_long_as_a_pause(record, loop):
    trace = record(paused_under_load, loop)
    assert trace.stderr == ""
    assert len(trace.named("Scheduler.schedule")) > 10 and max(one["dur"] for one in trace.named("Scheduler.schedule")) < 250_000


def profiled(**request):
    """Answers requests before, during and after a profile of SGLang's, in a paused run."""
    import time

    import sa_profile

    made = fake.scheduler()
    messages = fake.module("managers.io_struct")
    fake.answer(made, "a-1")
    fake.send(made, messages.ProfileReq(**request))
    fake.turn(made)
    until = time.monotonic() + 5
    while not sa_profile.is_enabled() and time.monotonic() < until:
        time.sleep(0.01)
    print(sa_profile.is_enabled())
    fake.answer(made, "b-2", tokens=6)


def test_a_profile_records_some_batches(record):
    trace = record(profiled, num_steps=3, SA_PROFILE_START="paused")
    assert trace.stdout == "True\n" and trace.stderr == ""
    assert len(trace.args("Scheduler.run_batch")) >= 3
    assert not [one for one in trace.args("request") if one.get("request_id") == "a-1"]


# Versions that lack a hook point


def test_a_missing_hook_point_is_reported_once(record):
    trace = record(fake.scheduler, FAKE_SGLANG_WITHOUT="managers.scheduler:Scheduler.run_batch")
    assert trace.stderr == "sa_profile: SGLang plugin: this SGLang has no Scheduler.run_batch: its spans are missing\n"
    assert trace.named("Scheduler.__init__")


def test_what_only_some_versions_have_is_not_missed(record):
    trace = record(fake.schedule, "a-1", FAKE_SGLANG_WITHOUT="managers.scheduler:Scheduler.send_abort_output")
    assert trace.stderr == "" and [one["name"] for one in life(trace, "a-1")] == LIFE


def test_without_a_variable_nothing_is_recorded(record):
    trace = record(fake.schedule, "a-1", SA_PROFILE_DIR=None)
    assert trace.stderr == "" and not trace.fragments


def registered():
    register()
    register()


def test_registering_twice_is_harmless(record):
    assert record(registered).stderr == ""
