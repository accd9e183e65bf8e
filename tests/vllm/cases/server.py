"""A vLLM server in separate processes, and the commands of this project."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

PATIENT = Path(__file__).parent / "patient"


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

    def sql(self, folder, statement):
        """Returns the rows of a statement of `report/sql` over a run, or `None` if the repository's tests cannot set up DuckDB here."""
        setup = Path(__file__).resolve().parents[3] / "tests/sql/python"
        python = subprocess.run([setup, "duckdb"], capture_output=True, text=True)
        if python.returncode != 0:
            return None
        environment = os.environ | {"VIRTUAL_ENV": str(Path(python.stdout.strip()).parent.parent)}
        return json.loads(self.run("sql", "--format", "json", folder, statement, check=True, env=environment).stdout)


class Server:
    """A running `vllm serve`.

    It records into `folder`. Without a folder the plugin is inactive, unless `under`, a command that starts the server, makes it record.
    """

    def __init__(self, machine, folder=None, arguments=(), patient=False, under=(), cwd=None, **environment):
        options = machine.options
        self.port = options.port
        self._patient = options.patient or patient
        self._ready_s = options.ready
        self.log = machine.folder / f"server-{self.port}.log"
        vllm = Path(sys.executable).with_name("vllm")
        command = [*under, str(vllm), "serve", options.model, "--served-model-name", "model", "--load-format", "dummy"]
        command += ["--max-model-len", "1024", "--enforce-eager", "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--disable-uvicorn-access-log", *arguments]
        self._log = open(self.log, "w")
        self._process = subprocess.Popen(
            command, cwd=cwd, env=_environment(self._patient, folder, environment), stdout=self._log, stderr=subprocess.STDOUT, start_new_session=True
        )

    def __enter__(self):
        until = time.monotonic() + self._ready_s
        while time.monotonic() < until:
            if self._process.poll() is not None:
                break
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5)
                self._check_patience()
                return self
            except (urllib.error.URLError, OSError):
                time.sleep(1)
        self.stop()
        sys.exit(f"tests/vllm: the server did not start; see {self.log}:\n" + self.log.read_text()[-2000:])

    def __exit__(self, *_error):
        self.stop()

    def _check_patience(self):
        if self._patient and "vllm_patient: in force" not in self.log.read_text():
            self.stop()
            sys.exit(f"tests/vllm: --patient is not in force; see {self.log}")

    def pids(self):
        """Returns pid → current title or command of the server's processes."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and _session(entry) == self._process.pid:
                title = (entry / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
                found[int(entry.name)] = title
        return found

    def processes(self):
        """Returns name → pid of the API server, the engine and the workers."""
        titled = {title.removeprefix("VLLM::"): pid for pid, title in self.pids().items() if title.startswith("VLLM::")}
        return {"APIServer": self._process.pid} | titled

    def worker(self):
        """Returns the pid of a worker."""
        return next(pid for pid, title in self.pids().items() if "Worker" in title)

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


def _session(entry):
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[3])
    except (OSError, ValueError, IndexError):
        return None


def _environment(patient, folder, more):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SA_PROFILE_")}
    inherited |= {"PYTHONFAULTHANDLER": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "PYTHONWARNINGS": "ignore"}
    inherited.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    # A CPU build's workers spin on every core that they may use. Two cores are left free, because otherwise all other clocks would be distorted.
    inherited.setdefault("VLLM_CPU_OMP_THREADS_BIND", f"0-{max(os.cpu_count() - 2, 0)}")
    inherited["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), inherited.get("PATH", "")])
    if patient:
        inherited["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PATIENT), inherited.get("PYTHONPATH")]))
    if folder is not None:
        inherited["SA_PROFILE_DIR"] = str(folder)
    return inherited | more
