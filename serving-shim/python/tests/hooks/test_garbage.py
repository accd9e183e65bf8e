"""Garbage collections as spans."""

import asyncio
import gc
import time

import sa_profile
from sa_profile._hooks import garbage


class Slow:
    """Garbage that takes long to be collected."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        time.sleep(0.005)


def collect():
    gc.disable()
    gc.collect()
    gc.freeze()  # so that only objects of this test are examined
    garbage.watch()
    garbage.watch()

    async def task():
        with sa_profile.span("work"):
            gc.collect(0)  # nothing to collect: too short to be recorded
            for _ in range(3):
                Slow()
            gc.collect()

    with sa_profile.span("thread"):
        asyncio.run(task())


def test_a_long_collection_is_a_span_of_the_thread_that_it_stops(record):
    trace = record(collect)
    (found,), (work,), (thread,) = (trace.named(name) for name in ("gc.collect", "work", "thread"))
    assert found["cat"] == "python" and found["dur"] >= 15_000
    assert found["args"]["generation"] == 2 and found["args"]["collected"] >= 3
    assert work["ts"] <= found["ts"] and found["ts"] + found["dur"] <= work["ts"] + work["dur"]
    assert found["tid"] == thread["tid"] != work["tid"]


def collect_everywhere():
    """Runs collections during as many allocations as possible, including those of our own calls."""
    garbage.SHORTEST_NS = 0
    garbage.watch()
    gc.set_threshold(1, 1, 1)
    request = sa_profile.request("r1", prompt_tokens=[1, 2])
    for number in range(200):
        with sa_profile.span("outer", number=number, some={"a": [number, {"b": ()}]}):
            with sa_profile.async_span("inner", lane="l", number=[number]):
                sa_profile.instant("point", values=[[], [number]])
            request.instant("request.token", number={"n": [number]})
            sa_profile.counter("level", value=number)
    request.end(reason="stop")
    gc.set_threshold(0)


def test_collections_within_our_calls_do_no_harm(record):
    trace = record(collect_everywhere)
    assert len(trace.named("outer", "X")) == 200 and len(trace.named("point")) == 200
    assert len(trace.named("gc.collect")) > 100
    assert trace.stderr == ""


def collect_only():
    garbage.watch()
    Slow()
    gc.collect()


def test_a_collection_is_not_the_first_event(record):
    """Otherwise any process that loads vLLM could become the run's main one."""
    assert not record(collect_only).folder.exists()
    assert record(collect_only, SA_PROFILE_START="paused").named("gc.collect") == []
