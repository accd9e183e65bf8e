"""Spans that end before all is told of them."""

import asyncio
import time

from switching import switch

import sa_profile
from sa_profile._hooks.chain import chain
from sa_profile._sa_profile import open_span


def gathered():
    class Thing:
        def work(self):
            time.sleep(0.01)

        async def later(self):
            await asyncio.sleep(0.01)

        async def failing(self):
            raise LookupError

    def observe(name):
        def begin(*_args):
            opened = open_span(name, first=1)

            def leave(_result, error):
                opened.returned()
                time.sleep(0.2)
                sa_profile.instant("gathered")
                opened.close(error, dict(last=2))

            return leave

        return begin

    for name in ("work", "later", "failing"):
        chain(Thing, name, observe(name))
    with sa_profile.span("outer"):
        Thing().work()

    async def main():
        with sa_profile.span("outer task"):
            await Thing().later()
            try:
                await Thing().failing()
            except LookupError:
                pass

    asyncio.run(main())


def test_what_is_gathered_after_the_call_is_no_part_of_it(record):
    trace = record(gathered)
    for name, most_us in (("work", 100_000), ("later", 100_000), ("failing", 100_000)):
        (span,) = trace.named(name)
        assert span["dur"] < most_us, name
        facts = dict(first=1, last=2) | (dict(error="LookupError") if name == "failing" else {})
        assert span["args"] == facts
    assert trace.named("work")[0]["dur"] >= 10_000 and trace.named("later")[0]["dur"] >= 10_000
    assert trace.named("outer")[0]["dur"] > 200_000, "what is around it goes on"
    (outer,) = trace.named("outer task")
    (later,) = trace.named("later")
    assert later["tid"] == outer["tid"] and later["ts"] + later["dur"] <= outer["ts"] + outer["dur"]


def closed_from_elsewhere():
    """As an async generator that somebody else closes."""

    async def main():
        opened = []

        async def opens():
            opened.append(open_span("moved"))
            await asyncio.sleep(10)

        async def closes():
            opened[0].returned()
            await asyncio.sleep(0.2)
            opened[0].close(None, dict(last=2))

        task = asyncio.create_task(opens())
        await asyncio.sleep(0.01)
        await asyncio.create_task(closes())
        task.cancel()

    sa_profile.instant("begun")
    asyncio.run(main())


def test_a_span_that_another_task_ends_has_its_own_end(record):
    (span,) = record(closed_from_elsewhere).named("moved")
    assert 5_000 <= span["dur"] < 100_000 and span["args"] == dict(last=2)


def closed_twice():
    with sa_profile.span("outer"):
        opened = open_span("once")
        opened.close(None, dict(first=1))
        opened.close(None, dict(second=2))
        sa_profile.instant("inside")
        time.sleep(0.002)


def test_a_span_that_is_closed_twice_ends_once(record):
    trace = record(closed_twice)
    assert trace.one("once") == dict(first=1) and trace.stderr == ""
    (outer,), (inside,) = trace.named("outer"), trace.named("inside")
    assert outer["ts"] <= inside["ts"] and outer["dur"] >= 2_000


def closed_while_paused():
    sa_profile.instant("begun")
    opened, plain = open_span("across", first=1), open_span("without args")
    switch("stop")
    unseen = open_span("while off")
    unseen.close(None, dict(last=2))
    plain.close()
    opened.close(None, dict(last=2))
    switch("start")
    with sa_profile.span("after"):
        open_span("inner").close(None, dict(last=3))


def test_a_span_that_ends_while_recording_is_off_is_whole_and_marked(record):
    trace = record(closed_while_paused)
    assert trace.one("across") == dict(first=1, last=2, sa_across_stop=True)
    assert trace.one("without args") == dict(sa_across_stop=True)
    assert not trace.named("while off") and trace.one("inner") == dict(last=3)
    assert len(trace.named("after")) == 1
