"""The commands in the wheel, and the preload library next to another one."""

import json
import os
import sys

import sa_profile

PROGRAM = """
import sa_profile
with sa_profile.span("step", tokens=8):
    pass
with open("/proc/self/maps") as maps:
    for line in maps:
        if "libsa_profile" in line and " r-xp " in line:
            print(line.split()[-1])
"""


def events(path):
    return json.loads(path.read_text())["traceEvents"]


def spans(path):
    return [event for event in events(path) if event["ph"] == "X"]


def test_a_command_is_recorded_and_merged_and_tables_are_written_if_possible(process, tmp_path):
    stdout, _ = process.run("sa-profile", "run", "--dir", "out", "--", sys.executable, "-c", PROGRAM)
    assert stdout == ""
    (span,) = spans(tmp_path / "out" / "trace.json")
    assert (span["name"], span["args"]) == ("step", {"tokens": 8})
    words = ("sa-profile", "tables", "--to", "tables", "out")
    if os.environ.get("SA_CARGO_PROFILE") == "source":
        _, said = process.run(*words, expected=2)
        assert "this build cannot write Parquet" in said and "build-wheels.sh" in said
        _, said = process.run("sa-profile", "sql", "out", "names", expected=2)
        assert "this build cannot write Parquet" in said
    else:
        process.run(*words)
        assert list((tmp_path / "tables" / "slice").rglob("*.parquet"))


def test_run_finds_the_preload_library_of_the_package(process, tmp_path):
    stdout, _ = process.run("sa-profile", "run", "--dir", "out", "--preload", "--", sys.executable, "-c", PROGRAM)
    assert stdout.splitlines() == [str(sa_profile.preload_path())]
    assert [span["name"] for span in spans(tmp_path / "out" / "trace.json")] == ["step"]


def test_run_samples_a_plain_script(process, tmp_path):
    (tmp_path / "plain.py").write_text("import time\ndef waits():\n    time.sleep(0.2)\nwaits()\n")
    process.run("sa-profile", "run", "--dir", "out", "--python", "--", sys.executable, "plain.py")
    found = [event for event in events(tmp_path / "out" / "trace.json") if event["name"] == "waits"]
    assert found and all(event["cat"] == "samples" for event in found)


def test_doctor_finds_the_parts_of_the_package(process):
    stdout, _ = process.run("sa-profile", "doctor")
    for part in (str(sa_profile.preload_path()), "sa_profile, in the python3 of PATH"):
        assert part in stdout


def test_the_preload_library_next_to_another_one(process, tmp_path):
    """Two more recorders are in the process, but the trace shows one process, and each event once."""
    libraries = f"{sa_profile.preload_path()}:{sa_profile.library_path()}"
    stdout = process.python("-c", PROGRAM, LD_PRELOAD=libraries, SA_PROFILE_DIR="out")
    assert sorted(stdout.splitlines()) == sorted(libraries.split(":"))
    process.run("trace-merge", "-q", "out")
    (span,) = spans(tmp_path / "out" / "trace.json")
    processes = {event["pid"] for event in events(tmp_path / "out" / "trace.json")}
    assert processes == {span["pid"]}


def test_a_preloaded_process_without_events_writes_no_file(process, tmp_path):
    stdout = process.python("-c", "import sa_profile", LD_PRELOAD=str(sa_profile.preload_path()), SA_PROFILE_DIR="out")
    assert stdout == ""
    assert os.listdir(tmp_path) == []
