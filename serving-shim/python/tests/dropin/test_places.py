"""The package in place of another one: as a link, as a copy, and as a package that forwards to it. It is always used by the other package's names."""

import ast
import shutil
from pathlib import Path

import pytest

import sa_profile

PACKAGE = Path(sa_profile.__file__).parent

FORWARDING = '''"""The profiler: sa_profile under this name."""
import sys
import sa_profile, sa_profile.env, sa_profile.merge, sa_profile.recorder
sys.modules.update({__name__ + name[len("sa_profile"):]: module for name, module in list(sys.modules.items()) if name.split(".")[0] == "sa_profile"})
'''


def link(place):
    place.symlink_to(PACKAGE, target_is_directory=True)


def copy(place):
    shutil.copytree(PACKAGE, place, ignore=shutil.ignore_patterns("__pycache__"))


def forward(place):
    place.mkdir()
    (place / "__init__.py").write_text(FORWARDING)


@pytest.fixture(params=[link, copy, forward])
def way(request):
    return request.param


def replace(root, name, way):
    place = root.joinpath("app", *name.split("."))
    place.parent.mkdir(parents=True)
    for folder in place.relative_to(root / "app").parents:
        if folder != Path():
            (root / "app" / folder / "__init__.py").touch()
    way(place)
    return [root / "app"] + ([PACKAGE.parent] if way is forward else [])


USE = """
import json, os
from pathlib import Path
from {name} import ProfileConfig, ProfileRecorder, get_profiler, is_enabled, merge_profile, profile_duration, profile_instant, profile_span
from {name} import configure_profiler, create_profile_config, start_profile, stop_profile
from {name}.env import load_profile_config
from {name}.merge import merge_fragments
from {name}.recorder import ProfileRecorder as of_submodule, _prepare_run
import {name}.recorder as recorder
import {name}

assert of_submodule is ProfileRecorder is {name}.recorder.ProfileRecorder
assert recorder is {name}.recorder
config = load_profile_config({{"SA_PROFILE_OUTPUT": "one"}})
{name}.recorder._profiler = ProfileRecorder(config, process_name="initial")
{name}.recorder._profiler_pid = os.getpid()
assert get_profiler(process_name="renamed") is {name}.recorder._profiler
with profile_span("span"):
    profile_instant("instant")
assert merge_profile() == 5
_prepare_run(config)
assert not list(Path("one/fragments").iterdir())
assert merge_fragments(config.fragments_dir, config.trace_file) == 0

{name}.recorder._profiler = None
os.environ["SA_PROFILE_OUTPUT"] = "two"
assert is_enabled()
get_profiler()

@{name}.track
def tracked():
    pass

tracked()
stop_profile()
assert start_profile()
profile_instant("again")
assert merge_profile() == 3
"""


@pytest.mark.parametrize("name", ["python.profile", "pypto_serving.tools.profile"])
def test_the_names_of_the_other_package_work(program, tmp_path, way, name):
    program(USE.format(name=name), path=replace(tmp_path, name, way))


def test_monkeypatching_reaches_the_functions(program, tmp_path, way):
    program(
        """
        import python.profile
        from python.profile import profile_instant, profile_span

        class Fake:
            seen, enabled = [], True
            def span(self, name, **keywords):
                self.seen.append((name, keywords))
                return self
            instant = span
            def __enter__(self): pass
            def __exit__(self, *error): pass

        python.profile.recorder.get_profiler = lambda **keywords: Fake()
        with profile_span("a", args={}):
            profile_instant("b")
        assert Fake.seen == [("a", {"cat": "e2e", "level": "e2e", "args": {}}), ("b", {"cat": "e2e", "level": "e2e", "args": None})]
        """,
        path=replace(tmp_path, "python.profile", way),
    )


def test_one_recorder_under_two_names(program, tmp_path, way):
    """A copy loads its own library. Still, the process has one recorder and one fragment, and each thread one track."""
    program(
        """
        import json, threading
        from pathlib import Path
        import python.profile as other
        import sa_profile

        with other.profile_span("by the other name"), sa_profile.span("by ours"):
            sa_profile.profile_instant("by both")
        assert sa_profile.get_profiler().active and other.get_profiler().active
        assert sa_profile.fragment() == other.fragment()
        assert sa_profile.Span is other.Span
        sa_profile.merge_profile()
        assert not other.get_profiler().active
        (fragment,) = Path("out/fragments").iterdir()
        events = [event for event in json.loads(Path("out/trace.json").read_text())["traceEvents"] if event["ph"] != "M"]
        assert sorted(event["name"] for event in events) == ["by both", "by ours", "by the other name"]
        assert len({event["tid"] for event in events}) == 1
        for output in ("one.json", "two.json"):
            with sa_profile.recording(output) as recorded:
                with other.profile_span("by the other name"), sa_profile.profile_span("by ours"):
                    pass
            assert recorded.report.members["events_by_phase"] == {"M": 2, "X": 2}
        """,
        path=[*replace(tmp_path, "python.profile", way), PACKAGE.parent],
        SA_PROFILE_OUTPUT="out",
    )


def test_the_package_imports_itself_relatively():
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert "sa_profile" not in {name.split(".")[0] for name in names}, f"{path}:{node.lineno}"
