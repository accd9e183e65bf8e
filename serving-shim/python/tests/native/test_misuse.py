"""Misused calls: reported once, and never an error."""

import asyncio
import os

import sa_profile


def test_texts_in_a_counter_are_left_out_and_reported_once(record):
    recorded = record(count_texts)
    assert recorded.stderr == "sa_profile: counter(): state: expected a finite number, found str: it is left out\n"
    assert recorded.args("requests") == [{"running": 3, "busy": 1, "share": 0.5}, {"cat": 2}]
    assert counted(recorded) == 2 * 2 + 1 + 1


def count_texts():
    for _ in range(2):
        sa_profile.counter("texts", state="text", other=None)
    sa_profile.counter("requests", running=3, state="idle", busy=True, share=0.5)
    sa_profile.counter("requests", cat=2, level="e2e", list=[1])


def counted(recorded):
    """Returns the number of values that were left out of counters, according to the loss records of the merged trace."""
    recorded.merge()
    losses = recorded.args("sa_loss")
    assert all(loss["cause"] == "bad_series" for loss in losses)
    return sum(loss["events"] for loss in losses)


def test_nan_and_bools_in_counters_are_handled_as_in_other_languages(record):
    recorded = record(count_odd_numbers)
    assert recorded.stderr == "sa_profile: counter(): nan: expected a finite number, found NaN: it is left out\n"
    assert recorded.args("numbers") == [{"busy": 1, "idle": 0, "count": 7}]
    assert recorded.args("none") == []
    assert counted(recorded) == 2 + 2
    assert recorded.args("numbers") == [{"busy": 1, "idle": 0, "count": 7}]


def count_odd_numbers():
    sa_profile.counter("numbers", nan=float("nan"), busy=True, idle=False, infinite=float("-inf"), count=7)
    sa_profile.counter("none", nan=float("nan"), none=None)


def test_an_end_without_a_begin_is_reported_once(record):
    recorded = record(end_without_begin)
    assert recorded.stderr == "sa_profile: end() without a begin() in this task or thread: nothing was ended\n"
    assert len(recorded.named("begun", "X")) == 2


def end_without_begin():
    async def main():
        sa_profile.begin("begun")
        sa_profile.end()
        sa_profile.end()

    sa_profile.begin("begun")
    sa_profile.end()
    sa_profile.end()
    sa_profile.end()
    asyncio.run(main())


def test_ends_of_unrecorded_spans_are_not_reported(record):
    assert record(end_unrecorded).stderr == ""
    assert record(end_without_begin, SA_PROFILE_DIR=None).stderr == ""


def end_unrecorded():
    sa_profile.begin("left out", level="verbose")
    sa_profile.begin("inner", level="verbose")
    sa_profile.end()
    sa_profile.end()
    sa_profile.begin("of the parent")
    if (child := os.fork()) == 0:
        sa_profile.end()
        os._exit(0)
    os.waitpid(child, 0)
    sa_profile.end()
