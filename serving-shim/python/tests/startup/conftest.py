"""Runs scripts that do not use the package, with and without the folder that `sa-profile run --python` puts into PYTHONPATH."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sa_profile

from ..native.trace import Trace

STARTUP = Path(sa_profile.__file__).parent / "startup"


class Slices:
    """The samples of one process, by thread name."""

    def __init__(self, events):
        self.events = events
        track_names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        self.tracks = {}
        for event in events:
            if event.get("cat") == "samples":
                name = track_names[event["tid"]]
                assert name.startswith("samples "), name
                self.tracks.setdefault(name.removeprefix("samples "), []).append(event)
        names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
        self.name = names[-1].partition("[")[0] if names else None  # without the pid, which the merge adds if two processes have the same name

    def ms(self, thread, name):
        """Returns for how many ms a function was on the stack of a thread."""
        found = [event["dur"] for event in self.tracks.get(thread, ()) if event["name"] == name]
        return sum(found) / 1000

    def names(self, thread="MainThread"):
        return {event["name"] for event in self.tracks.get(thread, ())}

    def named(self, name):
        return [event for event in self.events if event["name"] == name]


class Script:
    """A script in its own folder, with a package `lib` that contains these modules."""

    def __init__(self, folder, text, **modules):
        self.folder = folder
        library = folder / "lib"
        library.mkdir()
        for name, body in {"__init__": "", **modules}.items():
            (library / f"{name}.py").write_text(body)
        self.path = folder / "plain.py"
        self.path.write_text(text)
        self.directory = folder / "profile"

    def environment(self, sampled=True, **variables):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SA_PROFILE_", "PYTHON"))}
        inherited["PYTHONDONTWRITEBYTECODE"] = "1"
        if sampled:
            inherited |= {"PYTHONPATH": str(STARTUP), "SA_PROFILE_DIR": str(self.directory), "SA_PROFILE_RUN": "r"}
        if "PYTHONPATH" in variables:
            others = variables.pop("PYTHONPATH")
            inherited["PYTHONPATH"] = os.pathsep.join([inherited["PYTHONPATH"], others] if sampled else [others])
        return inherited | variables

    def run(self, *words, sampled=True, before=(), **variables):
        command = [sys.executable, *before, str(self.path), *words]
        environment = self.environment(sampled, **variables)
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=60)

    def all_processes(self):
        """Returns the samples of each process from a merged trace, because a killed process leaves its last samples in its ring."""
        if not self.directory.exists():
            return []
        sa_profile.merge(self.directory, output=self.folder / "trace.json")
        events = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
        by_pid = {}
        for event in events:
            by_pid.setdefault(event["pid"], []).append(event)
        return [Slices(events) for events in by_pid.values()]

    def processes(self):
        """Returns the samples of each process, by process name."""
        return {one.name: one for one in self.all_processes()}

    def succeeds(self, *words, **variables):
        """Runs the script, which must succeed and print nothing on stderr."""
        done = self.run(*words, **variables)
        assert (done.returncode, done.stderr) == (0, ""), done

    def sampled(self, *words, **variables):
        """Runs the script, and returns the samples of its only process."""
        self.succeeds(*words, **variables)
        (process,) = self.all_processes()
        assert Trace(process.events).overlaps() == []
        return process


@pytest.fixture
def script(tmp_path):
    """Returns script(text, **modules), which creates a script to run."""
    return lambda text, **modules: Script(tmp_path, text, **modules)
