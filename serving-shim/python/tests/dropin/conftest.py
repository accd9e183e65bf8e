"""Each test finds a process in which nothing was profiled, and none of the variables that ask for it."""

import json
import os
import textwrap
from pathlib import Path

import pytest

from sa_profile import create_profile_config, recorder

from ..conftest import Process


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
    """Runs a script in a process of its own, which finds packages in these folders too; gives what it printed."""

    def run(script, *, path=(), **variables):
        (tmp_path / "program.py").write_text(textwrap.dedent(script))
        return Process(tmp_path).python("program.py", PYTHONPATH=os.pathsep.join(map(str, path)), **variables)

    return run
