"""The lifetimes of asyncio tasks in a plain program, with `SA_PROFILE_TASKS`."""

import sys

import pytest

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="the lives of tasks need sys.monitoring, of Python 3.12")

PROGRAM = """
import asyncio

async def handle(seconds):
    await inner(seconds)
    return seconds

async def inner(seconds):
    await asyncio.sleep(seconds)

async def fails():
    await asyncio.sleep(0)
    raise KeyError("x")

async def waits():
    await asyncio.Event().wait()

async def main():
    async with asyncio.TaskGroup() as group:
        group.create_task(handle(0.05), name="first")
        group.create_task(handle(0.02))
    await asyncio.gather(handle(0), asyncio.ensure_future(fails()), return_exceptions=True)
    pending = asyncio.create_task(waits(), name="pending")
    await asyncio.sleep(0)
    print(repr(pending).count("cb="), asyncio.get_running_loop().get_task_factory())

asyncio.run(main())
"""


def lives(process, name):
    return [event for event in process.events if event.get("cat") == "task" and event["name"] == name]


def track_name(process, event):
    return next(one["args"]["name"] for one in process.events if one["name"] == "thread_name" and one["tid"] == event["tid"])


def test_each_task_is_a_span_on_its_track(script):
    process = script(PROGRAM).sampled(SA_PROFILE_TASKS="1", SA_PROFILE_SAMPLE_MS="0")
    (main,) = lives(process, "main")
    handled = sorted(lives(process, "handle"), key=lambda event: event["dur"])
    assert len(handled) == 3
    assert handled[0]["dur"] < 15_000 and 20_000 <= handled[1]["dur"] < 50_000 <= handled[2]["dur"] <= main["dur"]
    assert len({event["tid"] for event in handled[1:]} | {main["tid"]}) == 3
    assert [event["args"]["error"] for event in lives(process, "fails")] == ["KeyError"]
    assert [event["args"]["error"] for event in lives(process, "waits")] == ["CancelledError"]
    assert track_name(process, main) == "Task-1 main (async)"
    assert not [event for event in process.events if event["name"] == "inner"]


def test_spans_of_a_task_are_inside_its_lifetime(script):
    process = script(PROGRAM).sampled(SA_PROFILE_TASKS="1", SA_PROFILE_TRACK="__main__:inner", SA_PROFILE_SAMPLE_MS="0")
    inner = [event for event in process.named("inner") if event.get("cat") == "track"]
    assert len(inner) == 3
    for span in inner:
        around = [life for life in lives(process, "handle") if life["tid"] == span["tid"] and life["ts"] <= span["ts"] and span["ts"] + span["dur"] <= life["ts"] + life["dur"]]
        assert len(around) == 1


@pytest.mark.parametrize("tasks", ["0", "1"])
def test_a_program_sees_no_difference(script, tasks):
    plain = script(PROGRAM)
    without, done = plain.run(sampled=False), plain.run(SA_PROFILE_TASKS=tasks)
    assert (done.stdout, done.stderr, done.returncode) == (without.stdout, without.stderr, without.returncode) == ("1 None\n", "", 0)
    (process,) = plain.all_processes()
    assert bool(lives(process, "main")) == (tasks == "1")


EAGER = """
import asyncio

async def short():
    return 1

async def long():
    await asyncio.sleep(0.02)
    return 2

class Own(asyncio.Task):
    pass

async def main():
    loop = asyncio.get_running_loop()
    loop.set_task_factory(asyncio.eager_task_factory)
    assert await asyncio.create_task(short()) == 1 and await asyncio.create_task(long()) == 2
    loop.set_task_factory(lambda loop, coroutine, **more: Own(coroutine, loop=loop, **more))
    task = asyncio.create_task(long())
    assert type(task) is Own and await task == 2

asyncio.run(main())
"""


def test_task_factories_of_the_program_stay(script):
    process = script(EAGER).sampled(SA_PROFILE_TASKS="1", SA_PROFILE_SAMPLE_MS="0")
    assert [len(lives(process, name)) for name in ("main", "short", "long")] == [1, 0, 2]
    assert all(event["dur"] >= 19_000 for event in lives(process, "long"))


PENDING = """
import asyncio, gc

async def waits():
    await asyncio.get_running_loop().create_future()

async def step():
    await asyncio.sleep(0)

loop = asyncio.new_event_loop()
dropped = loop.create_task(waits())
loop.run_until_complete(step())
kept = loop.create_task(waits(), name="kept")
loop.run_until_complete(step())
del dropped
gc.collect()
print("ends")
"""


def test_tasks_that_never_end_do_no_harm(script):
    plain = script(PENDING)
    without, done = plain.run(sampled=False), plain.run(SA_PROFILE_TASKS="1")
    said = [[line.partition(" coro=")[0] for line in one.stderr.splitlines()] for one in (without, done)]
    assert (done.stdout, done.returncode, said[0]) == (without.stdout, without.returncode, said[1])
    (process,) = plain.all_processes()
    assert len(lives(process, "step")) == 2
    assert len(lives(process, "waits")) == 2


UVLOOP = """
import asyncio, uvloop

async def handle():
    await asyncio.sleep(0.02)

async def main():
    await asyncio.gather(handle(), asyncio.create_task(handle()))

uvloop.run(main())
"""


def test_all_tasks_of_uvloop_except_the_first_are_recorded(script):
    pytest.importorskip("uvloop")
    process = script(UVLOOP).sampled(SA_PROFILE_TASKS="1", SA_PROFILE_SAMPLE_MS="0")
    assert [len(lives(process, name)) for name in ("main", "handle")] == [0, 2]  # its loop creates the first task in C
