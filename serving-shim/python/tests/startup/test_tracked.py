"""Functions that `SA_PROFILE_TRACK` names."""

import os
import sys

import pytest

from .conftest import STARTUP

# From this version on, sys.monitoring reports calls. On older ones, functions are wrapped.
IS_MONITORED = sys.version_info >= (3, 12)


def spans(process, name):
    """Returns the spans of a function's calls, without samples of it."""
    return [event for event in process.named(name) if event.get("cat") == "track"]


LIBRARY = """
import functools

def free(x):
    return x + 1

def other(x):
    return x

async def waits():
    return 3

class Engine:
    def __init__(self):
        self.left = 2
    def step(self):
        return self.left
    @staticmethod
    def still(x):
        return x
    @classmethod
    def made(cls):
        return cls()

def fails():
    raise KeyError("x")
"""
PROGRAM = """
import asyncio
from lib import work
assert work.free(1) == 2 and work.other(5) == 5 and asyncio.run(work.waits()) == 3
assert work.Engine.made().step() == 2 and work.Engine.still(4) == 4
try:
    work.fails()
except KeyError as error:
    assert str(error) == "'x'"
"""
ALL = ["Engine.made", "Engine.step", "Engine.still", "fails", "free", "other", "waits"]


@pytest.mark.parametrize(
    ("names", "tracked"),
    [
        ("lib.work:free", ["free"]),
        ("lib.work:free, lib.work:waits", ["free", "waits"]),
        ("lib.work:Engine.*", ["Engine.made", "Engine.step", "Engine.still"]),
        ("lib.work:Engine.__init__", ["Engine.__init__"]),
        ("lib.*:*", ALL),
        ("*.work:*f*", ["fails", "free"]),
    ],
)
def test_functions_that_match_a_name_have_spans(script, names, tracked):
    process = script(PROGRAM, work=LIBRARY).sampled(SA_PROFILE_TRACK=names, SA_PROFILE_SAMPLE_MS="0")
    found = [event["name"] for event in process.events if event.get("cat") == "track"]
    assert sorted(set(found)) == tracked


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("lib.work:nothing", "this lib.work has no nothing: its spans are missing"),
        ("free", "SA_PROFILE_TRACK: expected MODULE:FUNCTION, found 'free': it is left out"),
    ],
)
def test_a_name_without_a_function_is_reported_once(script, names, said):
    done = script(PROGRAM, work=LIBRARY).run(SA_PROFILE_TRACK=names)
    assert (done.returncode, done.stderr) == (0, f"sa_profile: {said}\n")


LOADERS = """
import importlib.util, sys
print(type(importlib.util.find_spec("lib.work").loader).__name__, sys.meta_path == META)
import lib.work as work
print(type(work.__loader__).__name__, work.__spec__, work.free(1))
"""


def test_specs_and_loaders_stay_unchanged(script):
    plain = script("import sys\nMETA = list(sys.meta_path)\n" + LOADERS, work="__spec__ = None\n" + LIBRARY)
    done = plain.run(SA_PROFILE_TRACK="lib.*:*")
    assert (done.stdout, done.stderr) == ("SourceFileLoader True\nSourceFileLoader None 2\n", "")
    (process,) = plain.all_processes()
    assert spans(process, "free")


OWN_MODULES = """
import fnmatch, pathlib, queue, json, sys
assert all(module.__file__.startswith(sys.path[0]) for module in (fnmatch, pathlib, queue, json)), fnmatch.__file__
from lib.work import free
free(1)
"""


@pytest.mark.parametrize("names", ["lib.work:free", "lib.*:free", "*:free", "os:get_exec_path,lib.work:free,*:other"])
def test_a_file_with_the_name_of_a_standard_module_runs_only_if_the_program_imports_it(script, tmp_path, names):
    for name in ("fnmatch", "pathlib", "queue", "json"):
        (tmp_path / f"{name}.py").write_text("")
    for name in ("inspect", "functools", "re", "types", "collections"):
        (tmp_path / f"{name}.py").write_text("import sys\nsys.exit(5)\n")
    plain = script(OWN_MODULES, work="def free(x):\n    return x + 1\n")
    assert len(spans(plain.sampled(SA_PROFILE_TRACK=names), "free")) == 1


@pytest.mark.parametrize("first", ["re", "enum", "typing", "asyncio", "inspect", "json"])
def test_any_module_may_be_imported_first(script, first):
    text = f"import {first}\nfrom lib.work import free\nfree(1)\n"
    assert len(spans(script(text, work=LIBRARY).sampled(SA_PROFILE_TRACK="*:free"), "free")) == 1


THREADS = """
import threading
def go():
    from lib.slow import slow
    slow()
threads = [threading.Thread(target=go) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_each_thread_that_imports_a_module_gets_its_spans(script):
    plain = script(THREADS, slow="import time\ntime.sleep(0.1)\ndef slow():\n    pass\n")
    assert len(spans(plain.sampled(SA_PROFILE_TRACK="lib.slow:slow"), "slow")) == 6


def test_all_functions_may_be_tracked(script):
    done = script("import asyncio, json, logging, lib.work\nprint(lib.work.free(1))\n", work=LIBRARY).run(SA_PROFILE_TRACK="*:*")
    assert (done.stdout, done.stderr, done.returncode) == ("2\n", "", 0)


AWAITED = """
import types

@types.coroutine
def pause():
    return (yield from later())

def later():
    yield
    return 4

async def main():
    return await pause()
"""


def test_a_generator_that_can_be_awaited_still_can(script):
    plain = script("import asyncio, lib.low\nassert asyncio.run(lib.low.main()) == 4\n", low=AWAITED)
    process = plain.sampled(SA_PROFILE_TRACK="lib.low:*")
    assert len(spans(process, "pause")) == len(spans(process, "main")) == 1


SCRIPT = """
def early():
    return 1
import colorsys, lib.work
def late():
    return 1
early(), late(), lib.work.free(1)
"""


def test_functions_of_the_script_are_tracked_with_sys_monitoring(script):
    process = script(SCRIPT, work=LIBRARY).sampled(SA_PROFILE_TRACK="*:early,*:late,*:free")
    assert [len(spans(process, name)) for name in ("early", "late", "free")] == ([1, 1, 1] if IS_MONITORED else [0, 0, 1])


ODD = """
import importlib.util, sys
class Odd:
    def __getattr__(self, name):
        raise RuntimeError(name)
    __class__ = property(__getattr__)
sys.modules["lib.odd"] = Odd()
import lib.odd, lib.replaced
spec = importlib.util.find_spec("lib.late")
spec.loader = importlib.util.LazyLoader(spec.loader)
class Finder:
    def find_spec(name, path, target=None):
        return spec if name == "lib.late" else None
sys.meta_path.insert(0, Finder)
import lib.late
print("not loaded yet")
lib.late.free(2)
from lib.work import free
free(1)
"""


@pytest.mark.skipif(sys.version_info[:3] == (3, 13, 0), reason="3.13.0 itself cannot import such an object")
def test_objects_other_than_modules_and_lazy_modules_are_left_alone(script):
    replaced = "import sys\nsys.modules[__name__] = sys.modules['lib.odd']\n"
    plain = script(ODD, work=LIBRARY, replaced=replaced, late="print('loaded')\ndef free(x):\n    return x\n")
    done = plain.run(SA_PROFILE_TRACK="*:free")
    assert (done.stdout, done.stderr, done.returncode) == ("not loaded yet\nloaded\n", "", 0)
    (process,) = plain.all_processes()
    assert len(spans(process, "free")) == (2 if IS_MONITORED else 1)


CIRCLE = """
import lib.work
def own():
    return 1
"""


def test_a_module_is_wrapped_after_its_body_has_run(script):
    plain = script("import lib.outer\nlib.outer.own()\nlib.work.free(1)\n", outer=CIRCLE, work=LIBRARY)
    process = plain.sampled(SA_PROFILE_TRACK="lib.outer:own,lib.work:free")
    assert len(spans(process, "own")) == len(spans(process, "free")) == 1


# Functions that a wrapper could not cover, or would change.
FAR = """
import functools, pickle
REGISTRY = []
def register(function):
    REGISTRY.append(function)
    return function
def timed(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args)
    return inner
@register
def registered():
    return 1
@timed
def decorated():
    return 2
@functools.lru_cache
def cached():
    return 3
def outer():
    def within():
        return 4
    return within()
class Shape(dict):
    @property
    def area(self):
        return 5
EARLY = registered
assert REGISTRY[0]() == 1 and decorated() == 2 and cached() == 3 and outer() == 4 and Shape().area == 5
"""
FAR_PROGRAM = """
import pickle
from lib import far
far.REGISTRY[0]()
far.decorated()
far.outer()
far.Shape().area
assert pickle.loads(pickle.dumps(far.EARLY)) is far.REGISTRY[0] and not hasattr(far.registered, "__wrapped__")
"""


@pytest.mark.skipif(not IS_MONITORED, reason="sys.monitoring is of Python 3.12")
def test_functions_are_tracked_wherever_they_are_referenced(script):
    process = script(FAR_PROGRAM, far=FAR).sampled(SA_PROFILE_TRACK="lib.far:*,lib.far:outer.<locals>.within")
    names = ("registered", "decorated", "cached", "outer", "outer.<locals>.within", "Shape.area", "timed.<locals>.inner")
    assert [len(spans(process, name)) for name in names] == [2, 2, 1, 2, 2, 2, 0]


def test_a_property_may_be_named(script):
    script(FAR_PROGRAM if IS_MONITORED else "", far=FAR).succeeds(SA_PROFILE_TRACK="lib.far:Shape.area")


ENDS = """
import asyncio, threading
def fails():
    raise KeyError("x")
def passes_on():
    fails()
def deep(left):
    return deep(left - 1) if left else 0
async def waits(seconds):
    await asyncio.sleep(seconds)
    return seconds
async def is_cancelled():
    await asyncio.sleep(60)
async def both():
    task = asyncio.create_task(is_cancelled(), name="victim")
    await asyncio.gather(waits(0.05), waits(0.02))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
def numbers():
    try:
        yield 1
        yield 2
    finally:
        pass
def caught():
    try:
        passes_on()
    except KeyError:
        return 1
"""
ENDS_PROGRAM = """
import asyncio, threading
from lib import ends
assert ends.caught() == 1 and ends.deep(5) == 0 and list(ends.numbers()) == [1, 2]
asyncio.run(ends.both())
next(ends.numbers())
waiting = ends.waits(1)
loop = asyncio.new_event_loop()
task = loop.create_task(waiting)
loop.run_until_complete(asyncio.sleep(0))
task._log_destroy_pending = False
del task, waiting
loop.close()
threads = [threading.Thread(target=ends.deep, args=(3,)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_every_way_to_end_a_call_is_recorded(script):
    process = script(ENDS_PROGRAM, ends=ENDS).sampled(SA_PROFILE_TRACK="lib.ends:*", SA_PROFILE_SAMPLE_MS="0")
    expected = {"fails": "KeyError", "passes_on": "KeyError", "caught": None, "is_cancelled": "CancelledError", "both": None}
    for name, error in expected.items():
        assert [event.get("args", {}).get("error") for event in spans(process, name)] == [error], name
    assert len(spans(process, "deep")) == 6 + 4 * 4
    assert {event["tid"] for event in spans(process, "fails")} < {event["tid"] for event in spans(process, "deep")}
    waits = sorted(event["dur"] for event in spans(process, "waits") if "error" not in event.get("args", {}))
    assert 20_000 <= waits[0] < 50_000 <= waits[1] < 200_000
    assert [event["args"]["error"] for event in spans(process, "waits") if "error" in event.get("args", {})] == ["GeneratorExit"]
    assert [event["args"].get("closed", event["args"]["items"]) for event in spans(process, "numbers") if "items" in event["args"]] == [2, True]
    track_names = {event["tid"]: event["args"]["name"] for event in process.events if event["name"] == "thread_name"}
    assert {track_names[event["tid"]] for event in spans(process, "is_cancelled")} == {"victim is_cancelled (async)"}


TAKEN = """
from lib.work import free
print(free(1))
"""


@pytest.mark.skipif(not IS_MONITORED, reason="sys.monitoring is of Python 3.12")
def test_without_a_free_tool_functions_are_wrapped(script, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    plain = script(TAKEN, work=LIBRARY)
    # This sitecustomize is first in the path. It reserves the tools, then imports ours.
    (own / "sitecustomize.py").write_text(
        "import sys\nfor tool in (3, 4):\n    sys.monitoring.use_tool_id(tool, 'theirs')\n"
        f"sys.path.remove({str(own)!r})\nsys.modules.pop('sitecustomize')\nimport sitecustomize\n"
    )
    variables = {"PYTHONPATH": os.pathsep.join([str(own), str(STARTUP)]), "SA_PROFILE_DIR": str(plain.directory), "SA_PROFILE_RUN": "r"}
    done = plain.run(sampled=False, SA_PROFILE_TRACK="lib.work:free", **variables)
    assert (done.returncode, done.stdout) == (0, "2\n")
    assert done.stderr == "sa_profile: the tools 3 and 4 of sys.monitoring are taken: functions are wrapped, and those of the script have no spans\n"
    (process,) = plain.all_processes()
    assert len(spans(process, "free")) == 1


NEVER_BEGUN = """
import asyncio
async def handle(seconds):
    await asyncio.sleep(seconds)
async def main():
    lives = asyncio.create_task(handle(0.05))
    await asyncio.sleep(0)
    never = asyncio.create_task(handle(0))
    never.cancel()
    await asyncio.gather(lives, never, return_exceptions=True)
"""


def test_a_task_cancelled_before_its_first_step_ends_no_other_span(script):
    plain = script("import asyncio\nfrom lib import cancels\nasyncio.run(cancels.main())\n", cancels=NEVER_BEGUN)
    process = plain.sampled(SA_PROFILE_TRACK="lib.cancels:handle", SA_PROFILE_SAMPLE_MS="0")
    (handled,) = spans(process, "handle")
    assert handled["dur"] >= 50_000 and "error" not in handled.get("args", {})
