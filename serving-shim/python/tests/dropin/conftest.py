"""Runs each test in a process in which nothing was profiled, without variables that ask for recording."""

import json
import os
import textwrap
from pathlib import Path

import pytest

from sa_profile import create_profile_config, recorder

from ..conftest import Process


def lines(path):
    """Returns the records of a fragment for a reader that expects an object on every line, without the format's own records."""
    records = [json.loads(line) for line in Path(path).read_text().splitlines()]
    return [record for record in records if not (record["ph"] == "M" and record["name"].startswith("sa_"))]


def named(records, name):
    return [record for record in records if record["name"] == name]


def names(records):
    """Returns the names of events, and for metadata also the recorded name."""
    return [(record["name"], record["args"]["name"]) if record["ph"] == "M" else record["name"] for record in records]


def events(trace_file):
    return json.loads(Path(trace_file).read_text())["traceEvents"]


def forget():
    """Resets the process to the state in which nothing was profiled."""
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
    """Returns a function that runs a script in a separate process, which finds packages in these folders too, and returns its output."""

    def run(script, *, path=(), **variables):
        (tmp_path / "program.py").write_text(textwrap.dedent(script))
        return Process(tmp_path).python("program.py", PYTHONPATH=os.pathsep.join(map(str, path)), **variables)

    return run
