"""An SGLang server in separate processes."""

import sys

from base_server import BaseServer, inherited_environment
from client import Identity

PREFIX = "sglang::"  # of process titles
# SGLang sees a CPU, loads no NCCL, which this build of torch has, and starts one thread per process, because several spin in each other's way.
ENVIRONMENT = {"SGLANG_USE_CPU_ENGINE": "1", "SGLANG_NCCL_SO_PATH": "none", "OMP_NUM_THREADS": "1"}
CACHE_TOKENS = 8192


class Server(BaseServer):
    """A running `sglang.launch_server` with `ranks` schedulers in one tensor-parallel group.

    It records into `folder`. Without a folder, the plugin is inactive.
    """

    def __init__(self, machine, folder=None, arguments=(), ranks=1, **environment):
        options = machine.options
        self._ranks = ranks
        command = [sys.executable, "-m", "sglang.launch_server", "--model-path", options.model, "--served-model-name", "model", "--load-format", "dummy"]
        command += ["--device", "cpu", "--context-length", "1024", "--max-total-tokens", str(CACHE_TOKENS), "--enable-metrics"]
        command += ["--host", "127.0.0.1", "--port", str(options.port)]
        if ranks > 1:
            command += ["--tp-size", str(ranks)]
            environment["SGLANG_CPU_OMP_THREADS_BIND"] = "|".join(map(str, range(ranks)))
        super().__init__(machine, [*command, *arguments], inherited_environment(folder, **ENVIRONMENT, **environment))

    def identity(self, name, chat):
        return Identity(name, fields={"rid": name})

    def process_names(self):
        """Returns the names that the processes must have in a trace."""
        ranks = [f"scheduler_TP{rank}" for rank in range(self._ranks)] if self._ranks > 1 else ["scheduler"]
        return {PREFIX + name for name in ("http_server", "detokenizer", *ranks)}

    def processes(self):
        """Returns name → pid of the HTTP server, the schedulers and the detokenizer."""
        titled = {title.removeprefix(PREFIX).split()[0]: pid for pid, title in self.pids().items() if title.startswith(PREFIX)}
        return titled | {"http_server": self.pid}

    def scheduler(self):
        """Returns the pid of the scheduler that decides, which has rank 0."""
        return next(pid for name, pid in self.processes().items() if name in ("scheduler", "scheduler_TP0"))
