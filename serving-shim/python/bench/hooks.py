"""Measures the CPU time of the plugin itself, without vLLM. It makes the same calls on the tests' fake vLLM, grouped by the process that makes them in vLLM.

Three processes run at the same time and take turns: without the plugin, with it and recording paused, and recording. In each, the roles run requests one after another, from
their first step to their last. The cost of a role is its thread CPU time minus that of the process without the plugin in the same turn, so the fake's own work is not
included. The program prints the medians of the turns.

    python serving-shim/python/bench/hooks.py
"""

import gc
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

FAKE = Path(__file__).resolve().parents[1] / "tests" / "vllm" / "fake"
STATES = ("without", "paused", "on")
ROLES = {"engine": "the engine", "worker": "a worker", "output": "the API server's output processor"}
REQUESTS = (8, 64, 256)
TOKENS, TURNS = 300, 15
SERVE = "--serve"  # starts this program as one of the processes


class Subject:
    """A process in one of the states."""

    def __init__(self, state, folder):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SA_PROFILE_")}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(FAKE), os.environ.get("PYTHONPATH"))))
        if state != "without":
            environment["SA_PROFILE_DIR"] = str(folder / f"hooks-{state}")
        if state == "paused":
            environment["SA_PROFILE_START"] = "paused"
        command = [sys.executable, __file__, SERVE]
        self._process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def turn(self, requests):
        """Returns the CPU ns of a step, by role."""
        try:
            print(requests, file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise self._failed() from None
        line = self._process.stdout.readline()
        if not line:
            raise self._failed()
        return dict(zip(ROLES, map(float, line.split()), strict=True))

    def end(self):
        self._process.stdin.close()
        if self._process.wait() != 0:
            raise self._failed()

    def _failed(self):
        return SystemExit(f"hooks: a process failed: exit {self._process.wait()}")


def main():
    """Prints the cost of each role for a step and for each output token of it: paused, and recording."""
    with tempfile.TemporaryDirectory() as folder:
        steps = measure(Path(folder))
    for state in STATES[1:]:
        for role, description in ROLES.items():
            cost = {requests: steps[requests, state, role] for requests in REQUESTS}
            for requests, ns in cost.items():
                result(f"hooks_{role}_{state}_{requests}_requests_cpu_ns_per_output_token", ns / requests, f"{ns:.0f} for each step of {description}")
            fewest, most = min(cost), max(cost)
            further = (cost[most] - cost[fewest]) / (most - fewest)
            result(f"hooks_{role}_{state}_cpu_ns_per_step", cost[fewest] - fewest * further, f"and {further:.0f} for each token of it")


def result(name, value, note):
    print(f"RESULT {name} {value:.4g} {note}", flush=True)


def measure(folder):
    """Returns the medians of a step, by number of requests, state and role."""
    subjects = {state: Subject(state, folder) for state in STATES}
    steps = {}
    for at in range(TURNS + 1):
        for requests in REQUESTS:
            found = {state: subject.turn(requests) for state, subject in subjects.items()}
            for state in STATES[1:] if at else ():  # the first turn warms up
                for role in ROLES:
                    steps.setdefault((requests, state, role), []).append(found[state][role] - found["without"][role])
    for subject in subjects.values():
        subject.end()
    return {key: statistics.median(values) for key, values in steps.items()}


def serve():
    """Reads a number of requests from each line of stdin, runs them, and prints the ns of a step for each role."""
    from sa_profile.vllm import register

    register()
    import roles

    parts = roles.Engine(), roles.Worker(), roles.OutputProcessor()
    gc.freeze()  # as vLLM does once it has started
    for turn, line in enumerate(sys.stdin):
        requests = [f"cmpl-0123456789abcdef-{at}-{turn:08x}" for at in range(int(line))]
        messages = roles.messages(requests, TOKENS)
        print(*[part.run(requests, messages, TOKENS) for part in parts], flush=True)


if __name__ == "__main__":
    serve() if SERVE in sys.argv else main()
