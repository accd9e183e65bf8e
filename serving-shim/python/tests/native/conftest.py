"""Programs that record, each in a process of its own, and what the merge makes of it."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from .trace import Trace


# The wheel's commands lie beside the interpreter.
COMMANDS = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


class Program:
    """Runs scripts with recording on, all into one run directory."""

    def __init__(self, directory):
        self.directory = directory

    def environment(self, more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SA_PROFILE_")}
        return {**kept, "PATH": COMMANDS, "SA_PROFILE_DIR": str(self.directory), "PYTHONWARNINGS": "error", **more}

    def run(self, script, arguments=(), expected=0, **more):
        """Runs it, with the package imported, to its end, which must have this exit status; returns what it printed."""
        path = self.directory.parent / "program.py"
        path.write_text("import sa_profile\n" + textwrap.dedent(script))
        done = subprocess.run(
            [sys.executable, str(path), *arguments], env=self.environment(more), capture_output=True, text=True, timeout=120
        )
        assert done.returncode == expected, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert done.stderr == ""
        return done.stdout

    def merge(self):
        command = shutil.which("trace-merge", path=COMMANDS)
        assert command, "trace-merge is in the wheel: it must be beside the interpreter"
        done = subprocess.run([command, str(self.directory)], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        trace = json.loads((self.directory / "trace.json").read_text())
        return Trace(trace["traceEvents"] if isinstance(trace, dict) else trace)

    def record(self, script, **more):
        self.run(script, **more)
        return self.merge()


@pytest.fixture
def program(tmp_path):
    return Program(tmp_path / "run")
