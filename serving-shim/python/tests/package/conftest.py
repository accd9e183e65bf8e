"""The installed package on disk, and processes that use it."""

from importlib import metadata
from pathlib import Path

import pytest

from ..conftest import Process

SOURCES = Path(__file__).parents[2]


class Installed:
    """The files that pip installed."""

    def __init__(self):
        self.distribution = metadata.distribution("sa-profile")
        self.files = {str(file): Path(self.distribution.locate_file(file)).resolve() for file in self.distribution.files}

    def text(self, name):
        return next(path for file, path in self.files.items() if file.endswith(f".dist-info/{name}")).read_text()

    def programs(self):
        """Returns the files with machine code, by name."""
        return {path.name: path for path in self.files.values() if path.read_bytes()[:4] == b"\x7fELF"}


@pytest.fixture(scope="session")
def installed():
    return Installed()


@pytest.fixture
def process(tmp_path):
    return Process(tmp_path)
