"""Schedulers other than vLLM's own, and several schedulers in one process."""

import copy

import stand_ins as fake
from sa_profile.vllm import register


def answer(scheduler, *ids, tokens=3, preempt=()):
    core = fake.engine(scheduler=scheduler)
    fake.add(core, *ids, tokens=tokens)
    core.step_fn()
    scheduler.preempt.update(preempt)
    fake.turn(core)


def extended_managers():
    """Uses managers whose `free` calls that of its base class. The derived class is hooked first."""
    from test_vllm_older import output_of_0_11

    register()

    class Manager(fake.KVCacheManager):
        def free(self, request):
            super().free(request)

    class Older(fake.Scheduler):
        """A scheduler whose output does not contain preempted ids."""

        def schedule(self, throttle_prefills=False):
            return output_of_0_11(super().schedule(throttle_prefills))

    for manager in (Manager(), fake.KVCacheManager(), Manager()):
        scheduler = Older()
        scheduler.kv_cache_manager = manager
        answer(scheduler, "a-1", preempt=["a-1"])


def test_a_request_that_several_methods_free_is_preempted_once(record):
    trace = record(extended_managers)
    assert [one["preempted_ids"] for one in trace.args("scheduler.schedule") if "preempted_ids" in one] == [["a-1"]] * 3
    assert [one["preemptions"] for one in trace.args("request.finished")] == [1] * 3


def filtered():
    """Uses a scheduler that passes a copy of its output on, as a plug-in platform may."""
    register()

    class Filtering(fake.Scheduler):
        def update_from_output(self, scheduler_output, model_runner_output):
            return super().update_from_output(copy.copy(scheduler_output), model_runner_output)

    for scheduler in (fake.Scheduler(), Filtering()):
        answer(scheduler, "a-1")


def test_an_update_that_passes_on_a_copy_of_the_output_counts_once(record):
    trace = record(filtered)
    assert [one.get("batch") for one in trace.args("scheduler.update_from_output")] == [1, 2, 3] * 2
    assert [one["output_tokens"] for one in trace.args("request.finished")] == [3, 3]


def unread():
    from sa_profile._vllm import batch

    theirs, calls = batch.speculation, []

    def fails_once(*args):
        calls.append(args)
        return theirs(*args) if len(calls) > 1 else 1 / 0

    batch.speculation = fails_once
    fake.run("a-1", drafts=1)


def test_an_unreadable_update_only_costs_its_own_span(record):
    trace = record(unread)
    assert [one["batch"] for one in trace.args("scheduler.update_from_output")] == [1, 3]
    assert trace.stderr.count("its events are missing") == 1


def two_engines():
    """Runs two engines in this process whose requests have the same objects as ids."""
    cores, workers, name = [fake.engine(), fake.engine()], [fake.loaded(), fake.loaded()], "a-1"
    fake.add(cores[0], name, tokens=9, prompt=1)
    fake.add(cores[1], name, tokens=9, prompt=5)
    outputs = []  # kept alive, because a freed output may give its address to the next one
    for _ in range(3):
        outputs.append(cores[0].scheduler.schedule())
        workers[0].execute_model(outputs[-1])
        cores[0].scheduler.requests[name].num_output_tokens += 1
    # The other engine computes its prompt in parts. The last part has one token, before the request has an output.
    cores[1].scheduler.schedule()
    workers[1].execute_model(cores[1].scheduler.schedule())


def test_workers_in_one_process_do_not_share_requests(record):
    steps = record(two_engines).args("WorkerWrapperBase.execute_model")
    assert [one["decode_requests"] for one in steps] == [0, 1, 1, 0]
