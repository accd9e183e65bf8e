"""Recordings that a program starts and stops itself, and the report of a merge."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

import sa_profile
from sa_profile import compat


def ours():
    """Returns the SA_PROFILE_ variables."""
    return {name: value for name, value in os.environ.items() if name.startswith("SA_PROFILE_")}


def test_a_block_is_recorded_into_a_trace(record):
    recorded = record(record_blocks, SA_PROFILE_DIR=None)
    assert recorded.stderr == ""
    assert not recorded.folder.exists()
    trace = json.loads((recorded.folder.parent / "trace.json").read_text())
    spans = [(event["name"], event.get("args", {})) for event in trace["traceEvents"] if event["ph"] == "X"]
    assert spans == [("step 1", {"error": "KeyError"})], "the last block alone"


def record_blocks():
    kept = sa_profile.span("kept", cat="c")
    for number in range(2):
        assert not sa_profile.is_enabled()
        with contextlib.suppress(KeyError), kept, sa_profile.recording("trace.json") as recorded:
            assert sa_profile.is_enabled() and recorded.report is None
            with sa_profile.span(f"step {number}"):
                sa_profile.instant("in it")
                raise KeyError
        report = recorded.report
        assert report.output in (Path("trace.json"), Path.cwd() / "trace.json")
        assert report.is_clean and report.unfinished_spans == 0 and report.lost_events == 0
        assert report.events_total == sum(report.members["events_by_phase"].values())
        assert [process["pid"] for process in report.processes] == [os.getpid()]
        assert "trace.json" in str(report) and "members" not in repr(report)
        assert not ours()


def test_started_and_stopped(record):
    recorded = record(start_and_stop)
    assert recorded.stderr == ""
    assert [event["name"] for event in recorded.events if event["ph"] == "i"] == ["of the environment"]


def start_and_stop():
    sa_profile.instant("of the environment")
    late = sa_profile.span("made before", cat="c")
    assert sa_profile.start("out", levels="e2e")
    assert sa_profile.levels() == {"e2e"} and not sa_profile.is_enabled("kernel")
    with sa_profile.span("of a level that is off", level="kernel"):
        sa_profile.instant("of another one", level="verbose")
    sa_profile.instant("first")
    with late:
        sa_profile.track(len)("")
    report = sa_profile.stop()
    assert report.output.name == "trace.json" and report.members["events_by_phase"] == {"M": 2, "X": 2, "i": 1}
    assert sa_profile.stop() is None
    sa_profile.instant("between")
    assert sa_profile.start("out", levels=["verbose"]) and sa_profile.is_enabled("verbose")
    sa_profile.instant("second")
    assert sa_profile.merge().members["events_by_phase"]["i"] == 1, "while it records"
    assert sa_profile.stop().members["events_by_phase"] == {"M": 2, "i": 1}


def children_of_a_block_belong_to_it():
    script = "import sa_profile\nwith sa_profile.span('in the child'): pass"
    with sa_profile.recording("out/trace.json") as recorded:
        with sa_profile.span("here"):
            subprocess.run([sys.executable, "-c", script], check=True)
            if (child := os.fork()) == 0:
                with sa_profile.span("in the fork"):
                    os._exit(0)
            os.waitpid(child, 0)
    assert recorded.report.members["events_by_phase"]["X"] == 2 and recorded.report.unfinished_spans == 1
    assert len(recorded.report.processes) == 3
    assert os.environ["SA_PROFILE_START"] == "paused" and "SA_PROFILE_RUN" not in os.environ


def test_an_unwritable_directory_is_reported(record):
    recorded = record(record_nowhere, SA_PROFILE_DIR=None)
    assert recorded.stderr.count("\n") == 2 and "recording is off" in recorded.stderr


def record_nowhere():
    Path("file").touch()
    with sa_profile.recording("file/trace.json") as recorded:
        assert not sa_profile.is_enabled()
    assert recorded.report is None
    assert not sa_profile.start("file/out") and sa_profile.stop() is None
    assert not ours()


def test_merge_returns_the_report(record):
    recorded = record(merge_this)
    assert (recorded.folder / "trace.json").exists() and (recorded.folder.parent / "named.json").exists()


def merge_this():
    try:
        sa_profile.merge()
    except FileNotFoundError as error:
        assert "recorded nothing" in str(error)
    sa_profile.instant("one")
    directory = os.environ["SA_PROFILE_DIR"]
    report = sa_profile.merge()
    assert str(report.output) == f"{directory}/trace.json" and report.members["version"] == sa_profile.__version__
    assert sa_profile.merge(directory, output="named.json").events_total == report.events_total
    for paths, output in ((["nowhere"], None), ([directory], "missing/trace.json")):
        try:
            sa_profile.merge(*paths, output=output)
        except OSError as error:
            assert "nowhere" in str(error) or "missing" in str(error)
        else:
            raise AssertionError(paths)


def test_is_enabled_where_nothing_can_be_written(record):
    for variables in (dict(SA_PROFILE_DIR="file/run"), dict(SA_PROFILE_DIR=None, SA_PROFILE_OUTPUT="file/x.json")):
        recorded = record(ask_in_a_bad_place, **variables)
        assert recorded.stderr.count("\n") == 1 and "recording is off" in recorded.stderr


def ask_in_a_bad_place():
    Path("file").unlink(missing_ok=True)
    assert sa_profile.is_enabled() and sa_profile.is_enabled("e2e"), "the place can be made"
    Path("file").touch()
    for name in ours().keys() & {"SA_PROFILE_DIR", "SA_PROFILE_OUTPUT"}:
        os.environ[name] = "file/another.json"  # each directory is checked
    for _ in range(2):
        assert not sa_profile.is_enabled() and not sa_profile.is_enabled("e2e")
        sa_profile.instant("refused")
    assert os.listdir() == ["file"]


def is_enabled_where_a_program_sets_the_variables_late():
    sa_profile.instant("the recorder looks")
    assert not sa_profile.is_enabled()
    os.environ["SA_PROFILE_OUTPUT"] = "out"
    assert sa_profile.is_enabled()
    with sa_profile.profile_span("by the drop-in"):
        assert sa_profile.is_enabled("e2e")


def a_block_that_goes_elsewhere_or_is_ended_by_another_one_has_its_trace():
    here = Path.cwd()
    with sa_profile.recording("moved.json") as moved:
        sa_profile.instant("a")
        os.chdir(tempfile.mkdtemp())
    os.chdir(here)
    with sa_profile.recording("outer.json") as outer:
        sa_profile.instant("b")
        with sa_profile.recording("inner.json") as inner:
            sa_profile.instant("c")
    for block, name in ((moved, "moved.json"), (outer, "outer.json"), (inner, "inner.json")):
        assert block.report.is_clean and (here / name).exists()


def the_drop_in_records_into_each_block():
    with compat.profile_span("before"):
        pass
    earlier = compat.get_profiler(process_name="named")
    for output in ("one.json", "two.json"):
        assert not sa_profile.is_enabled() and not sa_profile.is_enabled("e2e")
        with sa_profile.recording(output) as recorded:
            assert sa_profile.is_enabled() and sa_profile.is_enabled("e2e") and not sa_profile.is_enabled("verbose")
            assert compat.get_profiler() is not earlier and compat.get_profiler().process_name == "named"
            compat.profile_instant("within")
            compat.profile_duration("within", dur_us=1)
        assert recorded.report.members["events_by_phase"] == {"M": 2, "X": 1, "i": 1}
        assert [process["name"] for process in recorded.report.processes] == ["named"]
        assert compat.get_profiler() is earlier
    assert sa_profile.start("three")
    compat.profile_instant("within")
    assert compat.stop_profile() and compat.start_profile() and compat.get_profiler().active
    compat.profile_instant("within")
    assert sa_profile.stop().members["events_by_phase"]["i"] == 1, "of the run that start_profile() has begun"
    assert not compat.get_profiler().enabled and not sa_profile.levels()
    with sa_profile.recording("four.json"):
        other = compat.configure_profiler(compat.create_profile_config(enabled=True, output="five"))
    assert compat.get_profiler() is other and other.active and sa_profile.is_enabled("e2e")


def blocks_that_end_in_any_order_leave_the_environment_as_it_was():
    before, profiler = ours(), compat.get_profiler()
    for order in ((0, 1), (1, 0)):
        blocks = [sa_profile.recording(f"{number}.json") for number in range(2)]
        for block in blocks:
            block.__enter__()
        compat.profile_instant("of the newest")
        for number, is_left in ((order[0], order[1]), (order[1], None)):
            blocks[number].__exit__()
            assert is_left is None or ours()["SA_PROFILE_OUTPUT"].endswith(f"{is_left}.json")
        assert ours() == before and compat.get_profiler() is profiler
        assert [block.report.members["events_by_phase"].get("i", 0) for block in blocks] == [0, 1]

    def again(number):
        for _ in range(5):
            with sa_profile.recording(f"{number}.json"), compat.profile_span("x"):
                pass

    threads = [threading.Thread(target=again, args=(number,)) for number in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert ours() == before and compat.get_profiler() is profiler and not sa_profile.levels()


def a_script_whose_name_is_no_text_is_recorded():
    sys.argv[0] = "\udce9serve.py"  # Python's text for a byte that is not UTF-8
    with sa_profile.recording("trace.json") as recorded:
        compat.profile_instant("here")
    assert recorded.report.members["events_by_phase"]["i"] == 1
    assert [process["name"].strip("\ufffd") for process in recorded.report.processes] == ["serve"]


@pytest.mark.parametrize(
    ("program", "variables"),
    [
        (children_of_a_block_belong_to_it, dict(SA_PROFILE_START="paused")),
        (a_script_whose_name_is_no_text_is_recorded, {}),
        (is_enabled_where_a_program_sets_the_variables_late, {}),
        (a_block_that_goes_elsewhere_or_is_ended_by_another_one_has_its_trace, {}),
        (the_drop_in_records_into_each_block, {}),
        (blocks_that_end_in_any_order_leave_the_environment_as_it_was, dict(SA_PROFILE_START="paused")),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_program_finds(record, program, variables):
    """Each of these programs checks what its name says."""
    assert record(program, **{"SA_PROFILE_DIR": None, **variables}).stderr == ""
