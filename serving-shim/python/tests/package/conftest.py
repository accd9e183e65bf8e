"""The installed package as it lies on the disk, and processes that use it."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2]


class Installed:
    """What pip installed."""

    def __init__(self):
        self.distribution = metadata.distribution("sa-profile")
        self.files = {str(file): Path(self.distribution.locate_file(file)).resolve() for file in self.distribution.files}

    def text(self, name):
        return next(path for file, path in self.files.items() if file.endswith(f".dist-info/{name}")).read_text()

    def programs(self):
        """Files that are machine code, by their names."""
        return {path.name: path for path in self.files.values() if path.read_bytes()[:4] == b"\x7fELF"}


class Process:
    """Starts processes in an empty folder, without any variable of ours but those given."""

    def __init__(self, folder):
        self.folder = folder

    def environment(self, variables):
        ours = ("SA_PROFILE_", "LD_PRELOAD", "ASCEND_", "VLLM_", "PYTHONPATH")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        path = os.pathsep.join([str(Path(sys.executable).parent), kept["PATH"]])
        return {**kept, "PATH": path, "PYTHONWARNINGS": "error", **variables}

    def run(self, *words, expected=0, **variables):
        """Runs a command to its end; returns what it printed to stdout and to stderr."""
        environment = self.environment(variables)
        done = subprocess.run(words, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == expected, f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout, done.stderr

    def python(self, *words, **variables):
        stdout, stderr = self.run(sys.executable, *words, **variables)
        assert stderr == ""
        return stdout


@pytest.fixture(scope="session")
def installed():
    return Installed()


@pytest.fixture
def process(tmp_path):
    return Process(tmp_path)
