"""A server of any engine in separate processes."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path


class BaseServer:
    """A running server. The class of an engine defines `processes` and `identity`."""

    def __init__(self, machine, command, environment, cwd=None):
        self.port = machine.options.port
        self._ready_s = machine.options.ready
        self.log = machine.folder / f"server-{self.port}.log"
        self._log = open(self.log, "w")
        self._process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=self._log, stderr=subprocess.STDOUT, start_new_session=True)

    def __enter__(self):
        until = time.monotonic() + self._ready_s
        while time.monotonic() < until:
            if self._process.poll() is not None:
                break
            try:
                urllib.request.urlopen(self.url("/health"), timeout=5)
                self.check_started()
                return self
            except (urllib.error.URLError, OSError):
                time.sleep(1)
        self.stop()
        sys.exit(f"the server did not start; see {self.log}:\n" + self.log.read_text()[-2000:])

    def __exit__(self, *_error):
        self.stop()

    def check_started(self):
        """Exits if the server, which is ready, did not start as it was asked to."""

    def processes(self):
        """Returns name → pid of the processes that serve."""
        raise NotImplementedError

    def identity(self, name, chat):
        """Returns how a client sends the id `name` along with a request, as an `Identity`."""
        raise NotImplementedError

    @property
    def pid(self):
        """Process id of the process that was started."""
        return self._process.pid

    def url(self, path):
        """Returns the address of a path."""
        return f"http://127.0.0.1:{self.port}{path}"

    def pids(self):
        """Returns pid → current title or command of the server's processes."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and _session(entry) == self._process.pid:
                title = (entry / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
                found[int(entry.name)] = title
        return found

    def wait(self, seconds=120):
        """Waits until the server has ended by itself, and returns its exit code."""
        return self._process.wait(seconds)

    def stop(self):
        """Ends the server: with SIGTERM first, then with SIGKILL."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                pass
        for pid in self.pids():
            os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()


def inherited_environment(folder, **more):
    """Returns the environment of a server that records into `folder`. Without a folder, the plugin is inactive."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SA_PROFILE_")}
    inherited |= {"PYTHONFAULTHANDLER": "1", "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}
    inherited["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), inherited.get("PATH", "")])
    if folder is not None:
        inherited["SA_PROFILE_DIR"] = str(folder)
    return inherited | more


def cpu_ns(processes):
    """Returns the CPU time of all threads of each process, and of all processes together."""
    found = {name: sum(map(_thread_ns, Path(f"/proc/{pid}/task").iterdir())) for name, pid in processes.items()}
    return found | {"all": sum(found.values())}


def _thread_ns(task):
    try:
        return int((task / "schedstat").read_text().split()[0])
    except OSError:
        return 0  # the thread has just ended


def _session(entry):
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[3])
    except (OSError, ValueError, IndexError):
        return None
