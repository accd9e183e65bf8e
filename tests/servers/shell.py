"""The shell of a user who has installed the wheel."""

import contextlib
import json
import os
import re
import select
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path


class Shell:
    """The user's shell, with the environment of the engine and the wheel activated."""

    def __init__(self, folder):
        self.folder = folder
        bin_folder = Path(sys.executable).parent
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("SA_PROFILE_")}
        self.environment = inherited | {"PATH": f"{bin_folder}:{inherited.get('PATH', '')}", "VIRTUAL_ENV": str(bin_folder.parent)}
        self.command = bin_folder / "sa-profile"

    def run(self, *arguments):
        """Runs a command to its end."""
        return subprocess.run([self.command, *arguments], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300)

    def json(self, *arguments):
        """Returns the JSON that a command prints."""
        done = self.run(*arguments)
        if done.returncode != 0:
            raise RuntimeError(f"sa-profile {' '.join(arguments)}: exit {done.returncode}: {done.stderr[-600:]}")
        return json.loads(done.stdout)

    @contextlib.contextmanager
    def started(self, *arguments):
        """Runs a command that serves. Yields the address that it prints to stderr, and the process."""
        process = subprocess.Popen([str(self.command), *arguments], cwd=self.folder, env=self.environment, stderr=subprocess.PIPE)
        try:
            yield self._address(process), process
        finally:
            process.terminate()
            process.wait()
            process.stderr.close()

    @staticmethod
    def _address(process, seconds=60):
        text, until = b"", time.monotonic() + seconds
        while time.monotonic() < until:
            found = re.search(rb"http[^ ]*127\.0\.0\.1:\S+", text)
            if found and b"\n" in text[found.end() :]:
                return found.group().decode()
            if select.select([process.stderr], [], [], 1)[0]:
                piece = os.read(process.stderr.fileno(), 65536)
                if not piece:
                    break
                text += piece
        raise RuntimeError(f"expected the address of a server, found {text.decode()!r}")


def fetched(shell, *command):
    """Returns the trace that `sa-profile open` serves, requested the way Perfetto's page does. The command then ends by itself."""
    with shell.started(*command) as (link, process):
        url = urllib.parse.parse_qs(urllib.parse.urlsplit(link).fragment.partition("?")[2])["url"][0]
        with urllib.request.urlopen(urllib.request.Request(url, headers={"Origin": "https://ui.perfetto.dev"}), timeout=60) as answer:
            trace = json.loads(answer.read())
        process.wait(30)
    return trace
