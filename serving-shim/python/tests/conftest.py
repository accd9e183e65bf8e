"""Runs functions of the tests in separate processes that record, and returns what they recorded."""

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FAKES = [str(path) for path in sorted(Path(__file__).parent.glob("*/fake"))]
ANNOUNCED = re.compile("sa_profile: [A-Za-z]+ plugin: recording to ")  # written by each server


class Recorded:
    """The events and the output of a process. `announced` contains the line that each server writes; all other lines on stderr are unexpected."""

    def __init__(self, folder, stdout, stderr):
        self.folder, self.stdout = folder, stdout
        lines = stderr.splitlines(keepends=True)
        self.announced = [line for line in lines if ANNOUNCED.match(line)]
        self.stderr = "".join(line for line in lines if line not in self.announced)
        self.fragments = sorted(folder.glob("fragments/trace.*.jsonl"))
        self.events = [event for path in self.fragments for event in _events(path)]

    def named(self, name, phase=None):
        """Returns the events of this name, ordered by time."""
        found = [one for one in self.events if one["name"] == name and phase in (None, one["ph"])]
        return sorted(found, key=lambda event: event.get("ts", 0))

    def args(self, name):
        """Returns the args of the events of this name."""
        return [event.get("args", {}) for event in self.named(name)]

    def one(self, name):
        """Returns the args of the only event of this name."""
        found = self.args(name)
        assert len(found) == 1, (name, found)
        return found[0]

    def flows(self, name="request"):
        """Returns (phase, id) of the flow events of this name."""
        found = [one for one in self.events if one["name"] == name and one["ph"] in "stf"]
        return [(one["ph"], one["id2"]["global"]) for one in sorted(found, key=lambda event: event["ts"])]

    def merge(self):
        """Loads the events of the merged trace instead. After a kill, the last ones are only in the ring."""
        subprocess.run([Path(sys.executable).with_name("trace-merge"), self.folder], check=True, capture_output=True)
        self.events = json.loads((self.folder / "trace.json").read_text())["traceEvents"]

    def unfinished(self):
        """Returns the args of spans that a kill left unfinished in the merged trace, by name."""
        begun = {one["name"]: dict(one["args"]) for one in self.events if one["ph"] == "B"}
        assert all(args.pop("unfinished") for args in begun.values())
        return begun

    def awaited(self):
        """Returns the args of the spans of requests that a front end waited for."""
        return [one["args"] for one in self.named("request", "X") if "external_id" in one["args"]]

    def process_names(self):
        return [one["args"]["name"] for one in self.named("process_name", "M")]


class Process:
    """Starts processes in an empty folder, with only the given SA_PROFILE_ variables."""

    def __init__(self, folder):
        self.folder = folder

    def environment(self, variables):
        """Returns the environment of a process. The value `None` removes a variable."""
        ours = ("SA_PROFILE_", "LD_PRELOAD", "ASCEND_", "VLLM_", "SGLANG_", "PYTHONPATH")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        path = os.pathsep.join([str(Path(sys.executable).parent), kept["PATH"]])
        every = {**kept, "PATH": path, "PYTHONWARNINGS": "error", **variables}
        return {name: value for name, value in every.items() if value is not None}

    def run(self, *words, expected=0, **variables):
        """Runs a command to its end, and returns its stdout and stderr."""
        environment = self.environment(variables)
        done = subprocess.run(words, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == expected, f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout, done.stderr

    def python(self, *words, **variables):
        stdout, stderr = self.run(sys.executable, *words, **variables)
        assert stderr == ""
        return stdout


def _events(path):
    for line in path.read_text().splitlines():
        event = json.loads(line) if line.strip() else {"name": "sa_"}
        if not event["name"].startswith("sa_"):
            yield event


@pytest.fixture
def record(tmp_path):
    """Returns record(function, *arguments, **more), which calls a function of a test module in a process that records into its own folder.

    Keywords in capitals are environment variables of that process, and `None` removes a variable. The others are passed to the function.
    """

    def run(function, *arguments, code=0, **more):
        variables = {name: value for name, value in more.items() if name.isupper()}
        keywords = {name: value for name, value in more.items() if name not in variables}
        folder = tmp_path / "profile"
        paths = [str(Path(inspect.getfile(inspect.unwrap(function))).parent), *FAKES, *sys.path]
        variables = {"PYTHONPATH": os.pathsep.join(paths), "SA_PROFILE_DIR": str(folder)} | variables
        module = function.__module__.rpartition(".")[2]
        program = f"import {module} as module; module.{function.__name__}(*{arguments!r}, **{keywords!r})"
        # In another folder, because sources in the current folder would take precedence over the installed package.
        stdout, stderr = Process(tmp_path).run(sys.executable, "-c", program, expected=code, **variables)
        return Recorded(folder, stdout, stderr)

    return run
