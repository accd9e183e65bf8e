"""Programs that record, each in a separate process, and the merged trace."""

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
        """Runs a script that has imported the package, and returns its output."""
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
