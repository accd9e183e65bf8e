"""Stalls of the event loop."""

import asyncio
import time


def stalled():
    import sa_profile
    from sa_profile.http.asgi import HttpSpans

    async def app(_scope, _receive, _send):
        await asyncio.sleep(0.05)
        time.sleep(0.08)
        await asyncio.sleep(0.05)

    async def main():
        await HttpSpans(app)({"type": "http"}, None, None)
        await asyncio.sleep(0.05)
        time.sleep(0.08)  # nobody waits
        await asyncio.sleep(0.05)
        print(len(asyncio.all_tasks()))

    sa_profile.instant("begun")
    asyncio.run(main())


def test_a_stall_while_requests_are_under_way_is_a_span(record):
    trace = record(stalled)
    (stall,) = trace.named("event_loop.stall")
    (request,) = trace.named("http.request")
    assert 40_000 < stall["dur"] < 200_000
    assert request["ts"] < stall["ts"] and stall["ts"] + stall["dur"] < request["ts"] + request["dur"]
