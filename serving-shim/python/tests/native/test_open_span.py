"""Spans that end before all of their args are known."""

import asyncio
import contextlib
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
            raise LookupError

    def observe(*_args):
        opened = open_span("call", first=1)

        def leave(_result, error):
            opened.set_end()
            time.sleep(0.2)
            opened.close(error, dict(last=2))
            opened.close(None, dict(second=2))  # does nothing

        return leave

    chain(Thing, "work", observe)
    chain(Thing, "later", observe)
    with sa_profile.span("outer"):
        Thing().work()

    async def main():
        with sa_profile.span("outer"), contextlib.suppress(LookupError):
            await Thing().later()

    asyncio.run(main())


def test_work_after_the_call_is_not_part_of_its_span(record):
    trace = record(gathered)
    assert trace.args("call") == [dict(first=1, last=2), dict(first=1, last=2, error="LookupError")] and trace.stderr == ""
    for call, outer in zip(trace.named("call"), trace.named("outer"), strict=True):
        assert 10_000 <= call["dur"] < 100_000 and outer["dur"] > 200_000, "what is around it goes on"
        assert call["tid"] == outer["tid"] and call["ts"] + call["dur"] <= outer["ts"] + outer["dur"]


def closed_from_elsewhere():
    """Closes a span in another task, as happens for an async generator."""

    async def main():
        opened = []

        async def opens():
            opened.append(open_span("moved"))
            await asyncio.sleep(10)

        async def closes():
            opened[0].set_end()
            await asyncio.sleep(0.2)
            opened[0].close(None, dict(last=2))

        task = asyncio.create_task(opens())
        await asyncio.sleep(0.01)
        await asyncio.create_task(closes())
        task.cancel()

    sa_profile.instant("begun")
    asyncio.run(main())


def test_a_span_that_another_task_closes_keeps_its_end(record):
    (span,) = record(closed_from_elsewhere).named("moved")
    assert 5_000 <= span["dur"] < 100_000 and span["args"] == dict(last=2)


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


def test_a_span_that_ends_while_recording_is_off_is_complete_and_marked(record):
    trace = record(closed_while_paused)
    assert trace.one("across") == dict(first=1, last=2, sa_across_stop=True)
    assert trace.one("without args") == dict(sa_across_stop=True)
    assert not trace.named("while off") and trace.one("inner") == dict(last=3)
    assert len(trace.named("after")) == 1


def switched_within():
    shared = sa_profile.span("shared")
    with shared:
        shared.arg(n=1)
        switch("stop")
        with shared:
            shared.arg(n=2)
            switch("start")
            with shared:
                shared.arg(n=3)
    with shared:
        shared.arg(n=4)


def test_spans_of_one_object_survive_being_switched_within(record):
    assert sorted(args["n"] for args in record(switched_within).args("shared")) == [1, 3, 4]
