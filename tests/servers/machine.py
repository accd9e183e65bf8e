"""The commands of this project, and the folders of the recordings."""

import json
import os
import subprocess
from pathlib import Path

SETTLE_S = 0.35  # time after `switch` until all processes work as before


class Machine:
    """Locations of programs and folders."""

    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def program(self, name):
        """Returns the path of one of this project's commands."""
        return str(self.options.bin / name)

    def run(self, *words, **options):
        """Runs a command of `sa-profile`."""
        return subprocess.run([self.program("sa-profile"), *map(str, words)], capture_output=True, text=True, **options)

    def report(self, path, *options):
        """Returns the JSON that `sa-profile report` prints of a run."""
        return json.loads(self.run("report", "--json", *options, path, check=True).stdout)

    def status(self, path):
        """Returns the JSON that `sa-profile status` prints of a run."""
        return json.loads(self.run("status", "--json", path, check=True).stdout)

    def sql(self, folder, statement):
        """Returns the rows of a statement of `report/sql` over a run, or `None` if the repository's tests cannot set up DuckDB here."""
        setup = Path(__file__).resolve().parents[1] / "sql/python"
        python = subprocess.run([setup, "duckdb"], capture_output=True, text=True)
        if python.returncode != 0:
            return None
        environment = os.environ | {"VIRTUAL_ENV": str(Path(python.stdout.strip()).parent.parent)}
        return json.loads(self.run("sql", "--format", "json", folder, statement, check=True, env=environment).stdout)

    def switch(self, command, folder):
        """Runs `sa-profile start` or `stop`, which returns when all processes have obeyed."""
        done = self.run(command, folder)
        if done.returncode != 0:
            raise RuntimeError(f"sa-profile {command}: {done.stderr}")
