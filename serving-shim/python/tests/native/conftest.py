"""Programs that record, each in a process of its own, and what the merge makes of it."""

import json
import textwrap

import pytest

from ..conftest import Process
from .trace import Trace


class Program:
    """Runs scripts with recording on, all into one run directory."""

    def __init__(self, directory):
        self.directory = directory
        self.process = Process(directory.parent)

    def run(self, script, arguments=(), **more):
        """Runs it, with the package imported, to its end; returns what it printed."""
        (self.directory.parent / "program.py").write_text("import sa_profile\n" + textwrap.dedent(script))
        return self.process.python("program.py", *arguments, **{"SA_PROFILE_DIR": str(self.directory)} | more)

    def merge(self):
        self.process.run("trace-merge", str(self.directory))
        return Trace(json.loads((self.directory / "trace.json").read_text())["traceEvents"])

    def record(self, script, **more):
        self.run(script, **more)
        return self.merge()


@pytest.fixture
def program(tmp_path):
    return Program(tmp_path / "run")
