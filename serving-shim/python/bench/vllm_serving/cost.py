"""CPU time of the plugin itself for each output token, without vLLM: the same calls on the tests' stand-ins, 64 requests a step."""

import os
import statistics
import subprocess
import sys
from pathlib import Path

FAKE = Path(__file__).resolve().parents[2] / "tests" / "vllm" / "fake"
REQUESTS, TOKENS, ROUNDS = 64, 300, 5


def run(machine, report):
    """Engine, worker and output processor in one process: recording on, and paused."""
    rounds = {name: [] for name in ("on", "paused")}
    for at in range(ROUNDS):
        for name, ns in rounds.items():
            folder = machine.folder / f"cost-{name}-{at}"
            environment = os.environ | {"SA_PROFILE_DIR": str(folder), "PYTHONPATH": str(FAKE)}
            if name == "paused":
                environment["SA_PROFILE_START"] = "paused"
            done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=True)
            ns.append(float(done.stdout))
    for name, ns in rounds.items():
        report.result(f"cost_{name}_cpu_ns_per_output_token", min(ns), f"median {statistics.median(ns):.0f}, without vLLM's own work")
    report.result("cost_of_recording_cpu_ns_per_output_token", min(rounds["on"]) - min(rounds["paused"]))


def one():
    """Steps of 64 requests; prints thread CPU ns for each output token."""
    from sa_profile.vllm import register

    register()
    import time

    from vllm.v1.core.sched.scheduler import Request, Scheduler
    from vllm.v1.engine import EngineCoreRequest
    from vllm.v1.engine.core import EngineCore
    from vllm.v1.engine.output_processor import OutputProcessor
    from vllm.v1.executor.executor import Executor, answer
    from vllm.v1.worker.worker_base import WorkerWrapperBase

    worker = WorkerWrapperBase()
    worker.init_worker([{}])
    worker.worker.load()

    class Both(Executor):
        def execute_model(self, scheduler_output, non_block=False):
            worker.execute_model(scheduler_output)
            return super().execute_model(scheduler_output, non_block)

    core, front = EngineCore(Scheduler(), Both()), OutputProcessor()
    for at in range(REQUESTS):
        request = EngineCoreRequest(f"cmpl-0123456789abcdef-{at}-0a1b2c3d", list(range(20)), TOKENS)
        front.add_request(request, None)
        core.add_request(Request(request))
    began, tokens = time.thread_time_ns(), 0
    while core.scheduler.has_requests():
        for group in core.step_fn()[0].values():
            tokens += len(group.outputs)
            front.process_outputs(group.outputs)
    print((time.thread_time_ns() - began) / tokens)


if __name__ == "__main__":
    one()
