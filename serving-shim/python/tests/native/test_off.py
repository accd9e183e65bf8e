"""Spans while nothing is recorded, and spans that recording starts or stops in."""

import asyncio
import contextlib
import inspect
import json
from pathlib import Path

import pytest
from switching import switch

import sa_profile
from sa_profile import _sa_profile


def test_spans_have_no_args_unless_recording_is_requested(record):
    assert record(make_unasked, SA_PROFILE_DIR=None).stderr == ""


def make_unasked():
    sa_profile.instant("the recorder looks")
    first, other = [sa_profile.span("name", cat="c", tokens=number) for number in range(2)]
    assert first is not other, "each holder has its own"
    assert (first.name, first.cat, first.level) == ("name", "c", "e2e")
    assert sa_profile.span("name", level="verbose").level == "verbose"
    with first as entered:
        first.arg(more=1)
    assert entered is first
    with sa_profile.recording("trace.json") as recorded, first, other:
        first.arg(of="the outer one")
    assert recorded.report.members["events_by_phase"]["X"] == 2
    outer, inner = sorted(spans_of("trace.json"), key=lambda span: -span["dur"])
    assert (outer.get("args"), inner.get("args")) == ({"of": "the outer one"}, None)


def spans_of(path):
    return [event for event in json.loads(Path(path).read_text())["traceEvents"] if event["ph"] == "X"]


def test_spans_of_a_paused_process_have_args_once_it_is_on(record):
    recorded = record(make_paused, SA_PROFILE_START="paused")
    assert recorded.args("kept") == [{"device": 0}, {"device": 1}]


def make_paused():
    kept = [sa_profile.span("kept", device=device) for device in range(2)]
    with kept[0], kept[1]:
        pass
    sa_profile.instant("attach")
    switch("start")
    for span in kept:
        with span:
            pass


def test_blocks_in_which_recording_starts_or_stops(record):
    assert record(switch_within, SA_PROFILE_DIR=None).stderr == ""


def switch_within():
    shared = sa_profile.span("shared")

    async def off(started, go):
        with shared:
            started.set()
            await go.wait()
            shared.arg(by="nobody")

    async def main():
        started, go = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(off(started, go))
        await started.wait()
        sa_profile.start("one")
        with shared:
            go.set()
            await task
            shared.arg(by="the recorded one")
        return sa_profile.stop()

    report = asyncio.run(main())
    (span,) = spans_of(report.output)
    assert report.is_clean and span["args"] == {"by": "the recorded one"}
    sa_profile.start("two")
    with shared:
        ended = sa_profile.stop()
        with shared:
            pass
    assert ended.unfinished_spans == 1
    sa_profile.start("three")
    shared.__enter__()
    shared.__exit__(None, None, None)
    assert sa_profile.stop().members["events_by_phase"]["X"] == 1


@pytest.mark.parametrize("directory", ["profile", None])
def test_other_ways_to_enter_a_span(record, directory):
    recorded = record(enter_otherwise, SA_PROFILE_DIR=directory)
    assert recorded.stderr == "" and len(recorded.named("span", "X")) == (3 if directory else 0)


def enter_otherwise():
    span = sa_profile.span("span")
    with contextlib.ExitStack() as stack:
        assert stack.enter_context(span) is span
    assert span.__enter__() is span
    assert span.__exit__(None, None, None) is None
    type(span).__enter__(span)
    type(span).__exit__(span, None, None, None)
    with sa_profile.recording("trace.json") as recorded:
        with span:
            pass
        span.__exit__(None, None, None)
    assert recorded.report.members["events_by_phase"]["X"] == 1 and recorded.report.unfinished_spans == 0


def test_the_null_span():
    nothing = _sa_profile.NullSpan()
    with nothing as entered:
        assert entered is None
    with contextlib.ExitStack() as stack:
        assert stack.enter_context(nothing) is None
    assert nothing(len) is len
    with pytest.raises(KeyError), nothing:
        raise KeyError


class Methods:
    @sa_profile.track
    def method(self, a, b=2):
        return self, a, b

    @classmethod
    @sa_profile.track
    def of_class(cls, a):
        return cls, a

    @staticmethod
    @sa_profile.track
    def static(__mangled=3):
        return __mangled


def everything(function, span, /, is_off, *args, call=1, wrap, **kwargs):
    return function, span, is_off, args, call, wrap, kwargs


def keywords(*, a, b=2):
    return a, b


async def coroutine():
    pass


def test_a_wrapper_has_the_parameters_of_the_function():
    methods = Methods()
    assert methods.method(1) == (methods, 1, 2) and methods.method(b=3, a=1) == (methods, 1, 3)
    assert Methods.of_class(1) == (Methods, 1) and Methods.static() == 3
    tracked = sa_profile.track(everything)
    assert tracked(1, 2, 3, 4, wrap=5, more=6) == (1, 2, 3, (4,), 1, 5, {"more": 6})
    assert sa_profile.track(keywords)(a=1) == (1, 2)
    assert inspect.signature(tracked) == inspect.signature(everything)
    assert inspect.iscoroutinefunction(sa_profile.track(coroutine))
    assert (tracked.__name__, tracked.__wrapped__, tracked.__kwdefaults__) == ("everything", everything, {"call": 1})
    assert sa_profile.track(len)([1]) == 1 and sa_profile.track(dict)(a=1) == {"a": 1}
    assert sa_profile.track(lambda a, b=[]: (a, b))(1) == (1, [])
    for options in ({}, {"inputs": True}):
        with pytest.raises(TypeError, match=r"keywords\(\) missing 1 required keyword-only argument: 'a'"):
            sa_profile.track(keywords, **options)()
