"""Servers with several engines, API servers and workers that start paused: each process has a name before the first request."""

import asyncio
import json

from client import load
from server import Server
from trace import merged

# Arguments of vLLM and the processes that result.
SHAPES = {
    "tensor": (["--tensor-parallel-size", "2"], {"APIServer", "EngineCore", "Worker_TP0", "Worker_TP1"}),
    "data": (
        ["--data-parallel-size", "2", "--api-server-count", "2"],
        {"APIServer_0", "APIServer_1", "EngineCore_DP0", "EngineCore_DP1", "Worker_DP0", "Worker_DP1"},
    ),
}


def run(machine, report):
    """Runs a server of each shape."""
    for shape, (arguments, expected) in SHAPES.items():
        folder = machine.folder / shape
        with Server(machine, folder, arguments=arguments, SA_PROFILE_START="paused", VLLM_CPU_OMP_THREADS_BIND="nobind") as server:
            named = sorted(process["name"] for process in json.loads(machine.run("status", "--json", folder, check=True).stdout)["processes"])
            report.check(f"{shape}_names_before_the_first_request", expected <= set(named) and not any("python" in name for name in named), *named)
            report.check(f"{shape}_no_name_twice", len(named) == len(set(named)))
            report.check(f"{shape}_log_says_where", f"recording to {folder} is paused" in server.log.read_text())
            machine.run("start", folder, check=True)
            timings = asyncio.run(load(server, 8, 32, machine.options.tokens))
        trace = merged(machine, report, shape, folder)
        finished = [args for args in trace.finished().values() if args["reason"] == "length"]
        report.check(f"{shape}_requests_finished", len(finished) == len(timings), f"{len(finished)} of {len(timings)}")
