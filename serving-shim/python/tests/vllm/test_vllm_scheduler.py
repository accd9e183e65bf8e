"""Schedulers that are not as vLLM's own: patched, extended, lacking something, or interrupted."""

import copy
import types

import stand_ins as fake
from sa_profile.vllm import register


def answer(scheduler, *ids, tokens=3, preempt=()):
    core = fake.engine(scheduler=scheduler)
    fake.add(core, *ids, tokens=tokens)
    core.step_fn()
    scheduler.preempt.update(preempt)
    fake.turn(core)


def patched_with_methods():
    """As a platform patches one object."""
    register()
    scheduler = fake.Scheduler()
    for name in ("schedule", "update_from_output"):
        theirs = getattr(fake.Scheduler, name)
        patched = lambda self, *args, theirs=theirs: theirs(self, *args)  # noqa: E731
        setattr(scheduler, name, types.MethodType(patched, scheduler))
    answer(scheduler, "a-1")


def test_a_scheduler_that_is_patched_with_methods_is_seen_once(record):
    trace = record(patched_with_methods)
    assert [one["batch"] for one in trace.args("scheduler.schedule")] == [1, 2, 3]
    assert [one["output_tokens"] for one in trace.args("scheduler.update_from_output")] == [1, 1, 1]
    assert trace.stderr == ""


def lacking():
    register()

    class Platform(fake.Scheduler):
        finish_requests = None

    fake.KVCacheManager.free = None
    fake.add(fake.engine(scheduler=Platform()), "a-1")


def test_what_every_scheduler_has_is_told_where_it_is_missing(record):
    assert record(lacking).stderr == "sa_profile: vLLM plugin: this vLLM has no Platform.finish_requests: its spans are missing\n"


def extended_managers():
    """Put off by a manager that has a `free` of its own, and calls that of its base. Its class is met first."""
    from test_vllm_older import output_of_0_11

    register()

    class Manager(fake.KVCacheManager):
        def free(self, request):
            super().free(request)

    class Older(fake.Scheduler):
        """Nobody is named that was put off."""

        def schedule(self, throttle_prefills=False):
            return output_of_0_11(super().schedule(throttle_prefills))

    for manager in (Manager(), fake.KVCacheManager(), Manager()):
        scheduler = Older()
        scheduler.kv_cache_manager = manager
        answer(scheduler, "a-1", preempt=["a-1"])


def test_a_request_that_several_methods_free_is_put_off_once(record):
    trace = record(extended_managers)
    assert [one["preempted_ids"] for one in trace.args("scheduler.schedule") if "preempted_ids" in one] == [["a-1"]] * 3
    assert [one["preemptions"] for one in trace.args("request.finished")] == [1] * 3


def filtered():
    """As a plug-in platform does it that leaves out what it has computed itself."""
    register()

    class Filtering(fake.Scheduler):
        def update_from_output(self, scheduler_output, model_runner_output):
            return super().update_from_output(copy.copy(scheduler_output), model_runner_output)

    for scheduler in (fake.Scheduler(), Filtering()):
        answer(scheduler, "a-1")


def test_an_update_that_hands_on_a_copy_of_the_output_is_one(record):
    trace = record(filtered)
    assert [one.get("batch") for one in trace.args("scheduler.update_from_output")] == [1, 2, 3] * 2
    assert [one["output_tokens"] for one in trace.args("request.finished")] == [3, 3]


def interrupted():
    """A signal's handler raises where our code is between two of its steps: what it noted stays."""
    from sa_profile._vllm import scheduler as plugin

    core = fake.engine()
    fake.add(core, "a-1")
    known = plugin._observers[id(core.scheduler)]
    known.freed, known.updating = {}, False
    fake.turn(core)
    known.updating = True
    fake.answer(core, "b-2")


def test_after_an_interrupt_the_spans_come_back(record):
    trace = record(interrupted)
    assert [one["batch"] for one in trace.args("scheduler.schedule")] == [1, 2, 3, 4, 5], "the first step's was lost"
    assert [one.get("batch") for one in trace.args("scheduler.update_from_output")] == [None, 1, 2, 3, 4, 5]


def unread():
    from sa_profile._vllm import batch

    theirs, calls = batch.speculation, []

    def fails_once(*args):
        calls.append(args)
        return theirs(*args) if len(calls) > 1 else 1 / 0

    batch.speculation = fails_once
    fake.run("a-1", drafts=1)


def test_an_update_that_cannot_be_read_costs_its_own_span(record):
    trace = record(unread)
    assert [one["batch"] for one in trace.args("scheduler.update_from_output")] == [1, 3]
    assert trace.stderr.count("its events are missing") == 1


def without_weak_references():
    register()

    class Slotted:
        __slots__ = ("block_pool", "coordinator", "prefix_cache_stats")
        __init__ = fake.KVCacheManager.__init__
        free = fake.KVCacheManager.free
        make_prefix_cache_stats = fake.KVCacheManager.make_prefix_cache_stats

    scheduler = fake.Scheduler()
    scheduler.kv_cache_manager = Slotted()
    answer(scheduler, "a-1")


def test_a_manager_that_cannot_be_observed_costs_no_step(record):
    trace = record(without_weak_references)
    for name in ("EngineCore.step", "scheduler.schedule", "scheduler.update_from_output"):
        assert len(trace.named(name)) == 3
    assert len(trace.stderr.splitlines()) == 1 and "weak reference" in trace.stderr


def unlucky():
    """What a step brought cannot be counted; what it speculated is known all the same."""
    from sa_profile._vllm import requests

    def produced(*_args):
        raise LookupError

    requests.EngineRequests.produced = produced
    fake.run("a-1", tokens=7, drafts=4)


def test_what_was_speculated_is_told_though_the_outputs_cannot_be_counted(record):
    found = record(unlucky).args("scheduler.update_from_output")
    assert [one["accepted"] for one in found if "accepted" in one] == [2, 2]


def two_engines():
    """Both in this process, and the ids of their requests are the same objects."""
    cores, workers, name = [fake.engine(), fake.engine()], [fake.loaded(), fake.loaded()], "a-1"
    fake.add(cores[0], name, tokens=9, prompt=1)
    fake.add(cores[1], name, tokens=9, prompt=5)
    outputs = []  # an output that is gone may give its address to the next one
    for _ in range(3):
        outputs.append(cores[0].scheduler.schedule())
        workers[0].execute_model(outputs[-1])
        cores[0].scheduler.requests[name].num_output_tokens += 1
    # The other one's prompt is computed in parts: the last of one token, before it has an output.
    cores[1].scheduler.schedule()
    workers[1].execute_model(cores[1].scheduler.schedule())


def test_workers_of_one_process_know_nothing_of_each_others_requests(record):
    steps = record(two_engines).args("WorkerWrapperBase.execute_model")
    assert [one["decode_requests"] for one in steps] == [0, 1, 1, 0]
