"""A vLLM server in separate processes."""

import os
import sys
from pathlib import Path

from base_server import BaseServer, inherited_environment
from client import Identity

PATIENT = Path(__file__).parent / "patient"


class Server(BaseServer):
    """A running `vllm serve`.

    It records into `folder`. Without a folder the plugin is inactive, unless `under`, a command that starts the server, makes it record.
    """

    def __init__(self, machine, folder=None, arguments=(), patient=False, under=(), cwd=None, **environment):
        options = machine.options
        self._patient = options.patient or patient
        vllm = Path(sys.executable).with_name("vllm")
        command = [*under, str(vllm), "serve", options.model, "--served-model-name", "model", "--load-format", "dummy"]
        command += ["--max-model-len", "1024", "--enforce-eager", "--host", "127.0.0.1", "--port", str(options.port)]
        command += ["--disable-uvicorn-access-log", *arguments]
        super().__init__(machine, command, _environment(self._patient, folder, environment), cwd)

    def check_started(self):
        if self._patient and "vllm_patient: in force" not in self.log.read_text():
            self.stop()
            sys.exit(f"tests/vllm: --patient is not in force; see {self.log}")

    def identity(self, name, chat):
        return Identity(f"chatcmpl-{name}" if chat else f"cmpl-{name}-0", headers={"x-request-id": name})

    def processes(self):
        """Returns name → pid of the API server, the engine and the workers."""
        titled = {title.removeprefix("VLLM::"): pid for pid, title in self.pids().items() if title.startswith("VLLM::")}
        return {"APIServer": self.pid} | titled

    def worker(self):
        """Returns the pid of a worker."""
        return next(pid for pid, title in self.pids().items() if "Worker" in title)


def _environment(patient, folder, more):
    found = inherited_environment(folder, VLLM_NO_USAGE_STATS="1")
    found.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    # A CPU build's workers spin on every core that they may use. Two cores are left free, because otherwise all other clocks would be distorted.
    found.setdefault("VLLM_CPU_OMP_THREADS_BIND", f"0-{max(os.cpu_count() - 2, 0)}")
    if patient:
        found["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PATIENT), found.get("PYTHONPATH")]))
    return found | more
