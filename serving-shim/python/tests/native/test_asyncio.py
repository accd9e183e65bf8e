"""Spans held over awaits: they are on the lane of their task, nest there, and the track has the task's name."""

import sys

import pytest


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_tasks_have_their_own_lanes(program, loop):
    pytest.importorskip(loop, reason=f"SKIPPED {loop}: not installed")
    trace = program.record(
        f"""
        import asyncio, {loop}
        OUTER = sa_profile.span("outer")

        async def request(n):
            with OUTER:
                OUTER.arg(n=n)
                for _ in range(3):
                    with sa_profile.span("off", level="verbose"), sa_profile.span("inner", n=n):
                        await asyncio.sleep(0)
            return n

        async def main():
            tasks = [asyncio.create_task(request(n), name=f"req-{{n}}") for n in range(20)]
            assert await asyncio.gather(*tasks) == list(range(20))

        {loop}.run(main())
        with sa_profile.span("after"):
            pass
        """
    )
    assert trace.counts() == {"outer": 20, "inner": 60, "after": 1}
    assert trace.overlaps() == []
    for outer in trace.spans("outer"):
        inner = [span for span in trace.spans("inner") if span["args"]["n"] == outer["args"]["n"]]
        assert all(trace.is_within(span, outer) for span in inner)
        assert trace.track_name(outer) == f"req-{outer['args']['n']} (async)"
    assert trace.track_name(trace.span("after")) == "MainThread"


def test_a_span_during_the_import_of_asyncio_hides_no_task(program):
    trace = program.record(
        """
        import sys
        import types

        half = types.ModuleType("asyncio.tasks")
        half.__spec__ = types.SimpleNamespace(_initializing=True)
        sys.modules["asyncio.tasks"] = half
        with sa_profile.span("within the import"):
            pass
        del sys.modules["asyncio.tasks"]

        import asyncio

        async def request():
            with sa_profile.span("in a task"):
                await asyncio.sleep(0)

        async def main():
            await asyncio.create_task(request(), name="req")

        asyncio.run(main())
        """
    )
    assert trace.track_name(trace.span("in a task")) == "req (async)"


def test_there_are_as_many_lanes_as_concurrent_tasks(program):
    trace = program.record(
        """
        import asyncio
        SPAN = sa_profile.span("held")

        async def one():
            with SPAN:
                await asyncio.sleep(0)

        async def main():
            for _ in range(500):
                await asyncio.gather(*(one() for _ in range(4)))

        asyncio.run(main())
        """
    )
    assert trace.counts() == {"held": 2000} and trace.overlaps() == []
    assert len(trace.tracks()) == 4


@pytest.mark.skipif(sys.version_info < (3, 11), reason="TaskGroup came with Python 3.11")
def test_groups_and_cancellation(program):
    trace = program.record(
        """
        import asyncio
        SPAN = sa_profile.span("held")

        async def wait(seconds):
            with SPAN:
                with sa_profile.span("inner"):
                    await asyncio.sleep(seconds)

        async def fail():
            with SPAN:
                await asyncio.sleep(0.01)
                raise ValueError

        async def main():
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(10):
                        group.create_task(wait(60))
                    group.create_task(fail())
            except* ValueError:
                pass
            task = asyncio.create_task(wait(60))
            await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            try:
                await asyncio.wait_for(wait(60), 0.01)
            except TimeoutError:
                pass

        asyncio.run(main())
        """
    )
    assert trace.counts() == {"held": 13, "inner": 12} and trace.overlaps() == []
    errors = sorted(span["args"]["error"] for span in trace.spans("held"))
    assert errors == ["CancelledError"] * 12 + ["ValueError"]


def test_callbacks_and_blocking_calls_stay_on_their_threads(program):
    trace = program.record(
        """
        import asyncio

        def callback():
            with sa_profile.span("callback"):
                pass

        def blocking():
            with sa_profile.span("blocking"):
                pass

        async def main():
            with sa_profile.span("main"):
                asyncio.get_running_loop().call_soon(callback)
                await asyncio.to_thread(blocking)

        asyncio.run(main())
        """
    )
    assert trace.overlaps() == []
    assert trace.track_name(trace.span("callback")) == "MainThread"
    assert trace.track_name(trace.span("blocking")).startswith("asyncio_")
    assert trace.track_name(trace.span("main")) == "Task-1 (async)"


@pytest.mark.parametrize("where", ["a task", "a thread"])
def test_a_task_freed_by_other_code_ends_its_own_spans(program, where):
    trace = program.record(
        f"""
        import asyncio, gc

        SHARED = sa_profile.span("shared")

        async def hold():
            sa_profile.begin("dropped")
            try:
                with SHARED:
                    try:
                        await asyncio.Event().wait()  # nothing else refers to this event
                    finally:
                        SHARED.arg(of="dropped")
            finally:
                sa_profile.end(of="dropped")

        def collect():
            sa_profile.begin("kept")
            with SHARED:
                gc.collect()
                sa_profile.instant("collected")
                SHARED.arg(of="kept")
            sa_profile.end(of="kept")

        async def main():
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)
            task = asyncio.create_task(hold())
            await asyncio.sleep(0)
            gc.disable()
            del task
            collect() if {where == "a task"} else await asyncio.to_thread(collect)

        asyncio.run(main())
        """
    )
    (collected,) = trace.instants("collected")
    ended = {span["args"]["of"]: span["ts"] + span["dur"] for span in trace.spans()}
    assert ended["dropped"] <= collected["ts"] <= ended["kept"] and len(trace.spans()) == 4
    assert trace.args("dropped") == {"of": "dropped"} and trace.args("kept") == {"of": "kept"}
    shared = sorted((span["args"] for span in trace.spans("shared")), key=lambda args: args["of"])
    assert shared == [{"of": "dropped", "error": "GeneratorExit"}, {"of": "kept"}]
    assert trace.unfinished() == []
