"""Measures the CPU time of an engine's plugin itself, without the engine. It makes the same calls on the tests' fake engine, grouped by the process that makes them in a server.

Three processes run at the same time and take turns: without the plugin, with it and recording paused, and recording. In each, the roles run requests one after another, from
their first step to their last. The cost of a role is its thread CPU time in its fastest turn, minus that of the process without the plugin, so the fake's own work and most of
what else the machine does are not included. A turn has requests with few and with many tokens. Their difference is the cost of tokens.

    python serving-shim/python/bench/hooks.py [vllm|sglang]
"""

import gc
import importlib
import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"
STATES = ("without", "paused", "on")
# Roles and their descriptions, by engine.
ENGINES = {
    "vllm": {"engine": "the engine", "worker": "a worker", "output": "the API server's output processor"},
    "sglang": {"scheduler": "the scheduler", "tokenizer_manager": "the tokenizer manager", "detokenizer": "the detokenizer"},
}
REQUESTS = {"vllm": (8, 64, 256), "sglang": (1, 8, 64)}
FEW, MANY, TURNS = 10, 300, 15
SERVE = "--serve"  # starts this program as one of the processes


class Subject:
    """A process in one of the states."""

    def __init__(self, engine, state, folder):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SA_PROFILE_")}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(TESTS / engine / "fake"), os.environ.get("PYTHONPATH"))))
        if state != "without":
            environment["SA_PROFILE_DIR"] = str(folder / f"hooks-{state}")
        if state == "paused":
            environment["SA_PROFILE_START"] = "paused"
        command = [sys.executable, __file__, SERVE, engine]
        self._roles = ENGINES[engine]
        self._process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def turn(self, requests, tokens):
        """Returns the CPU ns of requests with this number of tokens each, by role."""
        try:
            print(requests, tokens, file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise self._failed() from None
        line = self._process.stdout.readline()
        if not line:
            raise self._failed()
        return dict(zip(self._roles, map(float, line.split()), strict=True))

    def end(self):
        self._process.stdin.close()
        if self._process.wait() != 0:
            raise self._failed()

    def _failed(self):
        return SystemExit(f"hooks: a process failed: exit {self._process.wait()}")


def main(engine):
    """Prints the cost of each role, and of all together, for an output token, a step and a request: paused, and recording."""
    with tempfile.TemporaryDirectory() as folder:
        costs = measure(engine, Path(folder))
    for state in STATES[1:]:
        roles = {role: {requests: costs[requests, state, role] for requests in REQUESTS[engine]} for role in ENGINES[engine]}
        for role, cost in roles.items():
            report(f"{role}_{state}", cost, ENGINES[engine][role])
        together = {requests: [sum(parts) for parts in zip(*(cost[requests] for cost in roles.values()), strict=True)] for requests in REQUESTS[engine]}
        report(f"{engine}_together_{state}", together, "all of them")


def report(name, cost, description):
    """Prints the lines of one role, from the ns of a step and of a request by number of requests."""
    for requests, (step, request) in cost.items():
        result(f"hooks_{name}_{requests}_requests_cpu_ns_per_output_token", step / requests, f"{step:.0f} for each step of {description}")
        result(f"hooks_{name}_{requests}_requests_cpu_ns_per_request", request, f"without its tokens, in {description}")
    fewest, most = min(cost), max(cost)
    further = (cost[most][0] - cost[fewest][0]) / (most - fewest)
    result(f"hooks_{name}_cpu_ns_per_step", cost[fewest][0] - fewest * further, f"and {further:.0f} for each token of it")


def result(name, value, note):
    print(f"RESULT {name} {value:.4g} {note}", flush=True)


def measure(engine, folder):
    """Returns the ns of a step and of a request, by number of requests, state and role."""
    subjects = {state: Subject(engine, state, folder) for state in STATES}
    fastest = {}
    for at in range(TURNS + 1):
        for requests, tokens in itertools.product(REQUESTS[engine], (FEW, MANY)):
            for state, subject in subjects.items():
                for role, ns in subject.turn(requests, tokens).items():
                    key = requests, tokens, state, role
                    if at:  # the first turn warms up
                        fastest[key] = min(ns, fastest.get(key, ns))
    for subject in subjects.values():
        subject.end()

    def costs(requests, state, role):
        few, many = (fastest[requests, tokens, state, role] - fastest[requests, tokens, "without", role] for tokens in (FEW, MANY))
        step = (many - few) / (MANY - FEW)
        return step, (few - FEW * step) / requests

    return {key: costs(*key) for key in itertools.product(REQUESTS[engine], STATES[1:], ENGINES[engine])}


def serve(engine):
    """Reads numbers of requests and tokens from each line of stdin, runs them, and prints the ns of each role."""
    importlib.import_module(f"sa_profile.{engine}").register()
    roles = importlib.import_module(f"{engine}_roles")

    parts = [role() for role in roles.ROLES.values()]
    gc.freeze()  # as vLLM does once it has started
    for turn, line in enumerate(sys.stdin):
        requests, tokens = map(int, line.split())
        ids = [f"cmpl-0123456789abcdef-{at}-{turn:08x}" for at in range(requests)]
        messages = roles.messages(ids, tokens)
        print(*[part.run(ids, messages, tokens) for part in parts], flush=True)


if __name__ == "__main__":
    *options, chosen = [*sys.argv[1:]] or ["vllm"]
    if chosen not in ENGINES:
        sys.exit(__doc__)
    serve(chosen) if options == [SERVE] else main(chosen)
