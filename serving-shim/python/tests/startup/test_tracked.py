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
