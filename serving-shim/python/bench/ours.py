"""The cases of sa_profile, with recording on or off."""

import asyncio
import time

import sa_profile
from subject import Case

ITEMS = 4


def cases(state):
    """Every case, and what has to be skipped. The names end in the state."""
    if sa_profile.is_enabled() != (state == "on"):
        raise SystemExit(f"recording is not {state}")
    found = [*events(), *tracked(), Case("span_in_task", span_in_task()), *drop_in()]
    tensor, skipped = tensor_arg()
    for case in found + tensor:
        case.name = f"{case.name}_{state}"
    return found + tensor, skipped


def events():
    span, instant, counter = sa_profile.span, sa_profile.instant, sa_profile.counter
    begin, end = sa_profile.begin, sa_profile.end
    step = span("step", cat="bench")

    def span_reused(count):
        for _ in range(count):
            with step:
                pass

    def span_2_args(count):
        for _ in range(count):
            with span("step", cat="bench", prefill=1, decode=7):
                pass

    def instant_plain(count):
        for _ in range(count):
            instant("queued")

    def instant_2_args(count):
        for _ in range(count):
            instant("queued", request_id="cmpl-1", prompt_tokens=12)

    def begin_end(count):
        for _ in range(count):
            begin("step")
            end()

    def counter_2_series(count):
        for _ in range(count):
            counter("requests", running=3, waiting=1)

    return [
        Case("span_reused", span_reused),
        Case("span_2_args", span_2_args),
        Case("instant", instant_plain),
        Case("instant_2_args", instant_2_args),
        Case("begin_end", begin_end),
        Case("counter_2_series", counter_2_series),
    ]


def tracked():
    """What ``@track`` adds to a call."""

    def function():
        pass

    async def coroutine():
        pass

    async def generator():
        for item in range(ITEMS):
            yield item

    def calls(function):
        def run(count):
            for _ in range(count):
                function()

        return run

    async def consume(generator):
        async for _ in generator():
            pass

    track = sa_profile.track
    return [
        Case("track_function", calls(track(function)), calls(function)),
        Case("track_coroutine", in_task(track(coroutine)), in_task(coroutine)),
        Case(
            f"track_async_generator_{ITEMS}_items",
            in_task(lambda wrapped=track(generator): consume(wrapped)),
            in_task(lambda: consume(generator)),
        ),
    ]


def in_task(coroutine):
    """A loop that awaits within a task; the time that asyncio needs to start and end is not in it."""

    async def run(count):
        began = time.thread_time_ns()
        for _ in range(count):
            await coroutine()
        return time.thread_time_ns() - began

    return lambda count: asyncio.run(run(count))


def span_in_task():
    step = sa_profile.span("step", cat="bench")

    async def run(count):
        began = time.thread_time_ns()
        for _ in range(count):
            with step:
                pass
        return time.thread_time_ns() - began

    return lambda count: asyncio.run(run(count))


def drop_in():
    """The names of the pypto-serving profiler."""
    profile_span, profile_instant = sa_profile.profile_span, sa_profile.profile_instant

    def span_plain(count):
        for _ in range(count):
            with profile_span("step", cat="bench"):
                pass

    def span_3_args(count):
        for _ in range(count):
            with profile_span("step", cat="bench", args={"batch": 4, "prefill": 1, "decode": 7}):
                pass

    def instant_2_args(count):
        for _ in range(count):
            profile_instant("queued", cat="bench", args={"request_id": "cmpl-1", "prompt_tokens": 12})

    return [
        Case("drop_in_span", span_plain),
        Case("drop_in_span_3_args", span_3_args),
        Case("drop_in_instant_2_args", instant_2_args),
    ]


def tensor_arg():
    """A tensor is told by its type: neither printed nor copied from its device."""
    try:
        import torch
    except ImportError:
        return [], ["span_tensor_arg: torch is not installed"]
    span, tensor = sa_profile.span, torch.zeros(64, 64)

    def span_tensor_arg(count):
        for _ in range(count):
            with span("step", cat="bench", hidden=tensor):
                pass

    return [Case("span_tensor_arg", span_tensor_arg)], []
