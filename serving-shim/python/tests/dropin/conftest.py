"""Each test finds a process in which nothing was profiled, and none of the variables that ask for it."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from sa_profile import create_profile_config, recorder


def lines(path):
    """A fragment as a plain reader takes it: every line is an object. The format's own records are left out."""
    records = [json.loads(line) for line in Path(path).read_text().splitlines()]
    return [record for record in records if not (record["ph"] == "M" and record["name"].startswith("sa_"))]


def named(records, name):
    return [record for record in records if record["name"] == name]


def names(records):
    """The names of events; of metadata also what it says."""
    return [(record["name"], record["args"]["name"]) if record["ph"] == "M" else record["name"] for record in records]


def events(trace_file):
    return json.loads(Path(trace_file).read_text())["traceEvents"]


def forget():
    """Takes the process back to where nothing was profiled."""
    if recorder._profiler is not None:
        recorder._profiler.close()
    recorder._profiler = recorder._profiler_pid = recorder._configured = None
    for name in [name for name in os.environ if name.startswith("SA_PROFILE_")]:
        del os.environ[name]


@pytest.fixture(autouse=True)
def unprofiled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    forget()
    yield
    forget()


@pytest.fixture
def config(tmp_path):
    return create_profile_config(enabled=True, output=tmp_path / "out")


@pytest.fixture
def program(tmp_path):
    """Runs a script in a process of its own; gives what it printed."""

    def run(script, *, path=None, **variables):
        file = tmp_path / "program.py"
        file.write_text(textwrap.dedent(script))
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SA_PROFILE_")}
        if path is not None:
            kept["PYTHONPATH"] = os.pathsep.join(map(str, [*path, *filter(None, [kept.get("PYTHONPATH")])]))
        done = subprocess.run(
            [sys.executable, "-W", "error", str(file)],
            env={**kept, **variables},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (done.returncode, done.stderr) == (0, ""), f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run
