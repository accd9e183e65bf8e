"""Functions that `SA_PROFILE_TRACK` names."""

import pytest

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


@pytest.fixture
def library(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "__init__.py").write_text("")
    (tmp_path / "lib" / "work.py").write_text(LIBRARY)


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
def test_the_functions_of_a_name_have_spans(script, library, names, tracked):
    process = script(PROGRAM).sampled(SA_PROFILE_TRACK=names, SA_PROFILE_SAMPLE_MS="0")
    found = [event["name"] for event in process.events if event.get("cat") == "track"]
    assert sorted(set(found)) == tracked


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("lib.work:nothing", "this lib.work has no nothing: its spans are missing"),
        ("free", "SA_PROFILE_TRACK: expected MODULE:FUNCTION, found 'free': it is left out"),
    ],
)
def test_a_name_that_names_nothing_is_said_once(script, library, names, said):
    done = script(PROGRAM).run(SA_PROFILE_TRACK=names)
    assert (done.returncode, done.stderr) == (0, f"sa_profile: {said}\n")


LOADERS = """
import importlib.util, sys
print(type(importlib.util.find_spec("lib.work").loader).__name__, sys.meta_path == META)
import lib.work as work
print(type(work.__loader__).__name__, work.__spec__, work.free(1))
"""


def test_specs_and_loaders_are_those_of_python(script, library, tmp_path):
    (tmp_path / "lib" / "work.py").write_text("__spec__ = None\n" + LIBRARY)
    plain = script("import sys\nMETA = list(sys.meta_path)\n" + LOADERS)
    done = plain.run(SA_PROFILE_TRACK="lib.*:*")
    assert (done.stdout, done.stderr) == ("SourceFileLoader True\nSourceFileLoader None 2\n", "")
    (process,) = plain.all_processes()
    assert process.named("free")


OWN_MODULES = """
import fnmatch, pathlib, queue, json, sys
assert all(module.__file__.startswith(sys.path[0]) for module in (fnmatch, pathlib, queue, json)), fnmatch.__file__
from lib.work import free
free(1)
"""


@pytest.mark.parametrize("names", ["lib.work:free", "lib.*:free", "*:free", "os:get_exec_path,lib.work:free"])
def test_a_file_of_the_program_may_have_the_name_of_a_module(script, library, tmp_path, names):
    for name in ("fnmatch", "pathlib", "queue", "json"):
        (tmp_path / f"{name}.py").write_text("")
    assert len(script(OWN_MODULES).sampled(SA_PROFILE_TRACK=names).named("free")) == 1


STOPS = "import sys\nprint('the file of the program')\nsys.exit(5)\n"


@pytest.mark.parametrize("name", ["inspect", "functools", "re", "types", "collections"])
def test_no_file_of_the_program_runs_that_it_does_not_import(script, library, tmp_path, name):
    (tmp_path / f"{name}.py").write_text(STOPS)
    (tmp_path / "lib" / "work.py").write_text("def free(x):\n    return x + 1\n")
    plain = script("from lib.work import free\nprint(free(1))\n")
    done = plain.run(SA_PROFILE_TRACK="lib.work:free,*:other")
    assert (done.stdout, done.stderr, done.returncode) == ("2\n", "", 0)
    (process,) = plain.all_processes()
    assert len(process.named("free")) == 1


@pytest.mark.parametrize("first", ["re", "enum", "typing", "asyncio", "inspect", "json"])
def test_any_module_may_be_imported_first(script, library, first):
    text = f"import {first}\nfrom lib.work import free\nfree(1)\n"
    assert len(script(text).sampled(SA_PROFILE_TRACK="*:free").named("free")) == 1


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


def test_each_thread_that_imports_a_module_gets_its_spans(script, library, tmp_path):
    (tmp_path / "lib" / "slow.py").write_text("import time\ntime.sleep(0.1)\ndef slow():\n    pass\n")
    assert len(script(THREADS).sampled(SA_PROFILE_TRACK="lib.slow:slow").named("slow")) == 6


def test_all_functions_may_be_tracked(script, library):
    done = script("import asyncio, json, logging, lib.work\nprint(lib.work.free(1))\n").run(SA_PROFILE_TRACK="*:*")
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


def test_a_generator_that_can_be_awaited_still_can(script, library, tmp_path):
    (tmp_path / "lib" / "low.py").write_text(AWAITED)
    process = script("import asyncio, lib.low\nassert asyncio.run(lib.low.main()) == 4\n").sampled(SA_PROFILE_TRACK="lib.low:*")
    assert len(process.named("pause")) == len(process.named("main")) == 1


SCRIPT = """
def early():
    return 1
import colorsys, lib.work
def late():
    return 1
early(), late(), lib.work.free(1)
"""


def test_no_function_of_the_script_is_tracked(script, library):
    process = script(SCRIPT).sampled(SA_PROFILE_TRACK="*:early,*:late,*:free")
    assert [len(process.named(name)) for name in ("early", "late", "free")] == [0, 0, 1]


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


def test_what_is_no_module_and_what_loads_itself_later_is_left_alone(script, library, tmp_path):
    (tmp_path / "lib" / "replaced.py").write_text("import sys\nsys.modules[__name__] = sys.modules['lib.odd']\n")
    (tmp_path / "lib" / "late.py").write_text("print('loaded')\ndef free(x):\n    return x\n")
    plain = script(ODD)
    done = plain.run(SA_PROFILE_TRACK="*:free")
    assert (done.stdout, done.stderr, done.returncode) == ("not loaded yet\nloaded\n", "", 0)
    (process,) = plain.all_processes()
    assert len(process.named("free")) == 1


CIRCLE = """
import lib.work
def own():
    return 1
"""


def test_a_module_whose_body_runs_is_wrapped_when_it_is_whole(script, library, tmp_path):
    (tmp_path / "lib" / "outer.py").write_text(CIRCLE)
    process = script("import lib.outer\nlib.outer.own()\nlib.work.free(1)\n").sampled(SA_PROFILE_TRACK="lib.outer:own,lib.work:free")
    assert len(process.named("own")) == len(process.named("free")) == 1
