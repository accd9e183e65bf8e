"""Files of hooks: `SA_PROFILE_HOOKS`, with `import sa_profile` and with the module that `sa-profile run --hooks` starts."""

import os
import re
import sys
import tempfile
from pathlib import Path

import pytest
import sa_profile
from sa_profile import _sa_profile

from ..conftest import Process, Recorded

STARTUP = Path(sa_profile.__file__).parent / "startup"

OVEN = """
import functools

class Loaf:
    def __init__(self, id):
        self.id = id
        self.notes = {"kind": "rye"}

def traced(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)
    return call

class Device:
    def start(self, watts=900):
        return watts

class Oven(Device):
    def __init__(self):
        self.device = None
    def bake(self, loaves, *more, hot=True, **rest):
        return {loaf.id: 3 for loaf in loaves}
    async def cool(self, loaf):
        return loaf
    def slices(self, loaf, count):
        for index in range(count):
            got = yield Loaf(f"{loaf.id}{index}")
        return "done"
    async def steam(self, seconds):
        for second in range(seconds):
            yield second
    @classmethod
    def made(cls, kind):
        return cls()
    @staticmethod
    def degrees(text):
        return int(text)
    @property
    def door(self):
        return "shut"

class Tray:
    class Inner:
        def slide(self):
            return 1

@traced
def weigh(loaf, scale=1):
    return scale

def burn():
    raise KeyError("smoke")
"""

USE = """
import asyncio
from kitchen.oven import *
oven, loaf = Oven.made("gas"), Loaf("r1")
assert oven.bake([loaf], 1, 2, hot=False, extra=5) == {"r1": 3}
assert asyncio.run(oven.cool(loaf)) is loaf
async def steamed():
    return [second async for second in oven.steam(3)]
def sliced():
    return (yield from oven.slices(loaf, 2))
assert asyncio.run(steamed()) == [0, 1, 2] and [slice.id for slice in sliced()] == ["r10", "r11"]
assert Oven.degrees("220") == 220 and oven.start() == 900 and weigh(loaf) == 1 and Tray.Inner().slide() == 1
try:
    burn()
except KeyError as error:
    assert str(error) == "'smoke'"
"""


@pytest.fixture
def hooked(tmp_path):
    """Returns run(hooks, program), which runs a program with a file of hooks and a package `kitchen`. With `started`, the program itself does not import sa_profile."""

    def run(hooks, program=USE, started=False, **variables):
        folder = tmp_path / "kitchen"
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
        (folder / "oven.py").write_text(OVEN)
        file = tmp_path / "hooks.yaml"
        if hooks is not None:
            file.write_text(hooks)
        path = [STARTUP, tmp_path] if started else [tmp_path]
        defaults = {
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "SA_PROFILE_DIR": str(tmp_path / "profile"),
            "SA_PROFILE_HOOKS": str(file),
            "SA_PROFILE_SAMPLE_MS": "0",
            "SA_PROFILE_RUN": "r",
        }
        text = program if started else "import sa_profile\n" + program
        (tmp_path / "program.py").write_text(text)
        done = Process(tmp_path).run(sys.executable, "program.py", **defaults | variables)
        return Recorded(tmp_path / "profile", *done)

    return run


def hook(symbol, *lines):
    """Returns a file with one hook, with these further lines."""
    return "\n".join(["hooks:", f"- symbol: {symbol}", *(f"  {line}" for line in lines)])


def args_of(recorded, name):
    """Returns the args of all events of one span or async span."""
    return {key: value for args in recorded.args(name) for key, value in args.items()}


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize(
    ("function", "paths", "expected"),
    [
        ("Oven.bake", {"n": "len(loaves)", "r": "result['r1']", "hot": "hot"}, {"n": 1, "r": 3, "hot": False}),
        ("Oven.cool", {"id": "loaf.id", "kind": "result.notes['kind']"}, {"id": "r1", "kind": "rye"}),
        ("Oven.slices", {"of": "loaf.id", "last": "result.id"}, {"of": "r1", "last": "r11", "items": 2}),
        ("Oven.steam", {"seconds": "seconds", "last": "result"}, {"seconds": 3, "last": 2, "items": 3}),
        ("Oven.made", {"kind": "kind"}, {"kind": "gas"}),
        ("Oven.degrees", {"text": "text", "value": "result"}, {"text": "220", "value": 220}),
        ("Oven.start", {"watts": "watts"}, {"watts": 900}),  # inherited, with a default
        ("Tray.Inner.slide", {"r": "result"}, {"r": 1}),
        ("weigh", {"id": "loaf.id", "scale": "scale"}, {"id": "r1", "scale": 1}),  # wrapped by a decorator
        ("burn", {"r": "result"}, {}),  # without a result
    ],
)
def test_every_kind_of_function_has_spans_with_args(hooked, function, paths, expected, started):
    lines = ["category: heat", "args:", *(f"  {name}: {path}" for name, path in paths.items())]
    recorded = hooked(hook(f"kitchen.oven:{function}", *lines), started=started)
    assert recorded.stderr == ""
    assert expected.items() <= args_of(recorded, function).items()
    assert {event["cat"] for event in recorded.named(function)} == {"heat"}


@pytest.mark.parametrize("function", ["Oven.bake", "Oven.cool", "Oven.slices", "Oven.steam", "burn"])
def test_args_are_optional(hooked, function):
    recorded = hooked(hook(f"kitchen.oven:{function}", "name: short"))
    assert recorded.stderr == ""
    assert {event["cat"] for event in recorded.named("short")} == {"track"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("loaves[].id", ["r1"]),
        ("loaves[0].notes['kind']", "rye"),
        ("loaves[-1].id", "r1"),
        ("len(result)", 1),
        ("result[]", [3]),
        ("more", [1, 2]),
        ("rest['extra']", 5),
        ("extra", 5),  # passed on in **rest
        ("self.device", None),
    ],
)
def test_paths_lead_to_values(hooked, path, expected):
    recorded = hooked(hook("kitchen.oven:Oven.bake", "args:", f"  x: {path}"))
    assert recorded.stderr == ""
    assert recorded.one("Oven.bake") == {"x": expected}


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("self.nothing", "AttributeError: 'Oven' object has no attribute 'nothing'"),
        ("self.device.name", "AttributeError: 'NoneType' object has no attribute 'name'"),
        ("loaves[7]", "IndexError: list index out of range"),
        ("loaves['a']", "TypeError: expected a dict, found list"),
        ("len(self)", "TypeError: object of type 'Oven' has no len()"),
        ("breads", None),
        ("result.x", "AttributeError: 'dict' object has no attribute 'x'"),
    ],
)
def test_a_path_that_fails_is_reported_once_and_changes_nothing(hooked, path, problem):
    function = "Oven.bake" if problem else "Oven.cool"
    recorded = hooked(hook(f"kitchen.oven:{function}", "args:", f"  x: {path}", "  y: self.device"), USE + "oven.bake([loaf])\n")
    problem = problem or "the function has no parameter breads"
    assert recorded.stderr == f"sa_profile: spans {function} lack the arg x (path {path}): {problem}\n"
    assert recorded.args(function)[0] == {"y": None}


def test_an_error_without_a_text_or_with_a_long_one_changes_nothing(hooked, tmp_path):
    (tmp_path / "odd.py").write_text(
        "class Mute(Exception):\n    def __str__(self):\n        raise ValueError\n"
        "class Odd:\n    @property\n    def mute(self):\n        raise Mute\n"
        "    @property\n    def long(self):\n        raise ValueError('prompt ' * 1000)\n"
        "    def f(self):\n        return 1\n"
    )
    recorded = hooked(hook("odd:Odd.f", "args: {x: self.mute, y: self.long}"), "import odd\nassert odd.Odd().f() == 1\n")
    mute, long = recorded.stderr.splitlines()
    assert mute == "sa_profile: spans Odd.f lack the arg x (path self.mute): Mute"
    assert "ValueError: prompt prompt" in long and len(long) < 400


def test_a_property_may_call_the_hooked_function(hooked, tmp_path):
    (tmp_path / "queue_of.py").write_text("class Queue:\n    def size(self):\n        return 1\n    @property\n    def load(self):\n        return self.size()\n")
    recorded = hooked(hook("queue_of:Queue.size", "args: {load: self.load}"), "import queue_of\nassert queue_of.Queue().size() == 1\n")
    assert (recorded.stderr, recorded.args("Queue.size")) == ("", [{}, {"load": 1}])


@pytest.mark.parametrize("function", ["Fixed.f", "*"])
def test_a_class_that_cannot_be_changed_is_one_warning(hooked, tmp_path, function):
    (tmp_path / "fixed.py").write_text("class Meta(type):\n    def __setattr__(self, name, value):\n        raise TypeError('fixed')\nclass Fixed(metaclass=Meta):\n    def f(self):\n        return 1\nclass Other:\n    def g(self):\n        return 1\n")
    recorded = hooked(hook(f'"fixed:{function}"'), "import fixed\nassert fixed.Fixed().f() == fixed.Other().g() == 1\n")
    assert recorded.stderr == "sa_profile: fixed:Fixed.f cannot be wrapped (TypeError: fixed): its spans are missing\n"
    assert len(recorded.named("Other.g")) == (function == "*")


def test_ids_of_requests_are_never_cut(hooked):
    file = hook("kitchen.oven:Oven.bake", "args:", "  request_ids: result", "  others: loaves[].id")
    recorded = hooked(file, "from kitchen.oven import *\nOven().bake([Loaf(f'r{i}') for i in range(40)])\n")
    args = recorded.one("Oven.bake")
    assert args["request_ids"] == [f"r{index}" for index in range(40)]
    assert args["others"][-1] == "…[+24]"


def test_a_star_selects_many_functions(hooked):
    recorded = hooked(hook('"kitchen.*:Oven.s*"'))
    assert recorded.stderr == ""
    assert {event["name"] for event in recorded.events if event.get("cat") == "track"} == {"Oven.slices", "Oven.steam"}


@pytest.mark.parametrize(("level", "count"), [(None, 0), ("verbose", 1)])
def test_a_hook_has_a_level(hooked, level, count):
    recorded = hooked(hook("kitchen.oven:Oven.bake", "level: verbose", "args: {n: len(loaves)}"), SA_PROFILE_LEVEL=level)
    assert len(recorded.named("Oven.bake")) == count


@pytest.mark.parametrize("started", [False, True])
def test_a_symbol_that_does_not_exist_is_one_warning(hooked, started):
    symbols = ["kitchen.oven:nothing", "kitchen.oven:Oven.nothing", "kitchen.oven:Oven.door", "kitchen.grill:f", "kitchen.oven.deep:f", "kichen.oven:f", "kichen.oven:g"]
    recorded = hooked("hooks:\n" + "".join(f"- symbol: {symbol}\n" for symbol in symbols), started=started)
    said = recorded.stderr.splitlines()
    assert sorted(said) == sorted(
        f"sa_profile: {line}"
        for line in (
            "this kitchen.oven has no nothing: its spans are missing",
            "this kitchen.oven has no Oven.nothing: its spans are missing",
            "kitchen.oven:Oven.door cannot be wrapped (expected a Python function, found property): its spans are missing",
            "this kitchen has no module kitchen.grill: its spans are missing",
            "this kitchen has no module kitchen.oven.deep: its spans are missing",
            "there is no module kichen: 2 hooks have no spans",
        )
    )


def test_folders_without_init_are_packages(hooked, tmp_path):
    deep = tmp_path / "kitchen" / "cellar" / "shelf"
    deep.mkdir(parents=True)
    (deep / "jar.py").write_text("def opened():\n    pass\n")
    symbols = ["kitchen.cellar.shelf.jar:opened", "kitchen.cellar.shelf.none:f", "kitchen.cellar.none.jar:f"]
    recorded = hooked("hooks:\n" + "".join(f"- symbol: {symbol}\n" for symbol in symbols), "import kitchen\nfrom kitchen.cellar.shelf.jar import opened\nopened()\n")
    missing = [line.partition("no module ")[2].partition(":")[0] for line in recorded.stderr.splitlines()]
    assert missing == ["kitchen.cellar.shelf.none", "kitchen.cellar.none.jar"]
    assert len(recorded.named("opened")) == 1


@pytest.mark.parametrize(
    ("bounds", "count"),
    [
        (["min_version: 1.10.0"], 1),
        (["min_version: 1.10.1"], 0),
        (['max_version: "1.9"'], 0),
        (["max_version: 1.10.0", "package: Big-Kitchen"], 1),
        (["min_version: 2.0", "package: kitchen"], 0),
    ],
)
def test_a_hook_may_be_for_some_versions(hooked, tmp_path, bounds, count):
    (tmp_path / "big_kitchen-1.10.0+cpu.dist-info").mkdir()
    (tmp_path / "kitchen-1.10.0.dist-info").mkdir()
    # A module that only other versions have is not missed.
    recorded = hooked(hook("kitchen.oven:burn", *bounds) + "\n" + "\n  ".join(["- symbol: kitchen.none:f", "min_version: 9"]))
    assert recorded.stderr == ""
    assert len(recorded.named("burn")) == count


def test_the_version_in_the_package_counts_first(hooked, tmp_path):
    (tmp_path / "kitchen-3.dist-info").mkdir()
    file = hook("kitchen.oven:burn", "max_version: 2")
    assert not hooked(file).named("burn")
    (tmp_path / "kitchen" / "__init__.py").write_text("__version__ = '1.5'\n")
    assert hooked(file).named("burn")


def test_an_unknown_version_is_hooked(hooked):
    recorded = hooked(hook("kitchen.oven:burn", "max_version: 2"))
    assert recorded.stderr == "sa_profile: the version of kitchen is unknown: its functions are hooked whatever it is\n"
    assert recorded.named("burn")


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "hooks.yaml: No such file or directory (os error 2)"),
        ("hooks: [", "hooks.yaml:1: not YAML: "),
        (hook("kitchen.oven:burn", "nme: x"), "hooks.yaml:3: expected symbol, name, category, level, args, package, min_version, max_version, found `nme`"),
        (hook("__main__:f"), "hooks.yaml:2: functions of the script itself cannot be hooked: "),
    ],
)
def test_a_file_that_cannot_be_used_is_one_warning(hooked, tmp_path, text, problem, started):
    child = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import sa_profile'], check=True)\n"
    recorded = hooked(text, USE + child, started=started)
    (said,) = recorded.stderr.splitlines()
    assert said.startswith(f"sa_profile: no function is hooked: {tmp_path}/{problem}")


def test_lists_of_other_profilers_are_read(hooked, tmp_path):
    text = """
- symbol: kitchen.oven:Oven.bake
  handler: other.handlers:bake
  name: baking
  domain: Heat
  attributes:
    - name: loaves
      expr: len(args[1])
    - name: product
      expr: a * b
- symbol: kitchen.oven:weigh
  metrics:
    - name: weigh:duration
      type: timer
      labels: [{name: kind, expr: loaf.notes}]
"""
    recorded = hooked(text, USE + "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import sa_profile'], check=True)\n")
    assert recorded.stderr == f"sa_profile: {tmp_path}/hooks.yaml: ignored: expr `a * b` (line 10), handler (line 3)\n"
    assert recorded.one("baking") == {"loaves": 1}
    assert recorded.named("baking")[0]["cat"] == "Heat"
    assert recorded.one("weigh") == {"kind": {"kind": "rye"}}


CHILDREN = """
import multiprocessing, os, subprocess, sys
def child():
    import sa_profile
    from kitchen.oven import Oven, Loaf
    Oven().bake([Loaf("c")])
if __name__ == "__main__":
    os.mkdir("elsewhere")
    process = multiprocessing.get_context("spawn").Process(target=child)
    process.start()
    process.join()
    subprocess.run([sys.executable, "-c", "from program import child; child()"], cwd="elsewhere", check=True)
    assert process.exitcode == 0
"""


@pytest.mark.parametrize("started", [False, True])
def test_child_processes_are_hooked(hooked, started):
    file = hook("kitchen.oven:Oven.bake", "args: {n: len(loaves)}") + "\n- symbol: kichen:f\n"
    recorded = hooked(file, CHILDREN, started, SA_PROFILE_HOOKS="hooks.yaml")
    assert recorded.stderr == "sa_profile: there is no module kichen: 1 hook has no spans\n" * 2  # the second from subprocess
    assert recorded.args("Oven.bake") == [{"n": 1}] * 2
    assert len({event["pid"] for event in recorded.named("Oven.bake")}) == 2


def test_the_files_on_the_page_are_read():
    page = (Path(__file__).resolve().parents[4] / "docs" / "hooks.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        hooks, ignored = _sa_profile.read_hooks(file.name)
    symbols = [f"{hook['module']}:{hook['function']}" for hook in hooks]
    assert (symbols, ignored) == (re.findall(r"symbol: \"?([^\s\"]+)", text), None)


def test_a_process_is_hooked_once_even_if_it_imports_the_package(hooked):
    recorded = hooked(hook("kitchen.oven:Oven.bake"), "import sa_profile\n" + USE, started=True)
    assert len(recorded.named("Oven.bake")) == 1


def test_hooks_alone_record_nothing(hooked):
    recorded = hooked(hook("kitchen.oven:Oven.bake", "args: {n: len(loaves)}"), SA_PROFILE_DIR=None, SA_PROFILE_RUN=None)
    assert (recorded.stderr, recorded.events, recorded.folder.exists()) == ("", [], False)


@pytest.mark.parametrize("before", ["", "import kitchen.oven\n"])
@pytest.mark.parametrize("symbols", [["kitchen.oven:b*", "kitchen.oven:burn"], ["kitchen.oven:burn", "*.oven:burn"], ["*.oven:burn", "kitchen.oven:burn"]])
def test_the_first_hook_for_a_function_counts(hooked, symbols, before):
    file = "\n".join(["hooks:", *(f'- {{symbol: "{symbol}", name: "{symbol}"}}' for symbol in symbols)])
    recorded = hooked(file, f"{before}import sa_profile\n{USE}", started=True, PYTHONPATH=".")
    # A symbol that names the module comes first.
    named = [symbol for symbol in symbols if recorded.named(symbol)]
    assert named == [min(symbols, key=lambda symbol: symbol.startswith("*"))]


def test_a_module_that_is_being_imported_is_reported(hooked, tmp_path):
    (tmp_path / "early.py").write_text("import sa_profile\ndef f():\n    pass\n")
    recorded = hooked(hook("early:f"), "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import early'], check=True)\n")
    assert recorded.stderr == "sa_profile: early was being imported when the hooks were read: its functions have no spans\n"
