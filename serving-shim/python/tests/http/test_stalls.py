"""Stalls of the event loop."""

import asyncio
import os
import time

import sa_profile
from sa_profile._http import asgi
from sa_profile._http.asgi import HttpSpans


def stalled():
    async def app(_scope, _receive, _send):
        await asyncio.sleep(0.05)
        with sa_profile.span("stalling"):
            time.sleep(0.08)
        await asyncio.sleep(0.05)

    async def main():
        await HttpSpans(app)({"type": "http"}, None, None)
        await asyncio.sleep(0.05)
        with sa_profile.span("stalling while nobody waits"):
            time.sleep(0.08)
        await asyncio.sleep(0.05)
        print(len(asyncio.all_tasks()))

    sa_profile.instant("begun")
    asyncio.run(main())


def test_a_stall_while_requests_are_under_way_is_a_span(record):
    trace = record(stalled, SA_PROFILE_LEVEL="verbose")
    stalls, (request,) = trace.named("event_loop.stall"), trace.named("http.request")
    (cause,), (other,) = trace.named("stalling"), trace.named("stalling while nobody waits")
    assert any(is_end_of(cause, stall) and stall["dur"] > 40_000 for stall in stalls)
    assert not any(is_end_of(other, stall) for stall in stalls)
    for stall in stalls:  # a busy machine may have caused some more
        assert request["ts"] < stall["ts"] and stall["ts"] + stall["dur"] < request["ts"] + request["dur"]


def is_end_of(cause, stall):
    """Returns true if a span ends within a stall."""
    return stall["ts"] < cause["ts"] + cause["dur"] <= stall["ts"] + stall["dur"]


def stalled_at_each_phase():
    async def app(_scope, _receive, _send):
        for phase in range(10):
            await asyncio.sleep(0.05 + phase / 1000)
            with sa_profile.span("stalling"):
                time.sleep(0.021)

    sa_profile.instant("begun")
    asyncio.run(HttpSpans(app)({"type": "http"}, None, None))


def test_no_stall_of_20_ms_falls_between_two_beats(record):
    trace = record(stalled_at_each_phase, SA_PROFILE_LEVEL="verbose")
    stalls, causes = trace.named("event_loop.stall"), trace.named("stalling")
    assert len(causes) == 10
    for cause in causes:
        assert any(is_end_of(cause, stall) for stall in stalls)


def forked_amid_a_request():
    async def app(_scope, _receive, _send):
        child = os.fork()
        if child == 0:
            print(len(asgi._under_way), bool(asgi._heartbeat._loops), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(len(asgi._under_way), bool(asgi._heartbeat._loops))

    sa_profile.instant("begun")
    asyncio.run(asgi.HttpSpans(app)({"type": "http"}, None, None))


def test_the_child_of_a_fork_has_no_request_under_way(record):
    trace = record(forked_amid_a_request, PYTHONWARNINGS="ignore", SA_PROFILE_LEVEL="verbose")
    assert trace.stdout == "0 False\n1 True\n"


def test_by_default_no_timer_wakes_the_event_loop(record):
    assert record(forked_amid_a_request, PYTHONWARNINGS="ignore").stdout == "0 False\n0 False\n"
