"""Kills a process with SIGKILL under load. The trace must name its current requests and batch."""

import asyncio

from killing import LATE, PROMPTS, kill_under_load, names_first, wait_until_dead
from server import Server
from trace import merged

STEP = ("request_ids", "tokens", "prefill_requests")
# The moment of the kill decides which of a step's calls are left open.
CALLS = {"WorkerWrapperBase.execute_model", "model_runner.sample_tokens", "executor.execute_model", "executor.sample_tokens"}
# Processes to kill. For each span that the kill leaves open: the args that identify its work.
VICTIMS = {
    "Worker": {name: STEP for name in ("WorkerWrapperBase.execute_model", "model_runner.sample_tokens")},
    "EngineCore": {"request": ("request_id", "prompt_tokens")} | {name: STEP for name in ("executor.execute_model", "executor.sample_tokens")},
    "APIServer": {
        "http.request": ("method", "path", "x_request_id"),
        "request": ("request_id", "external_id", "prompt_tokens", "max_tokens"),
    },
}


def run(machine, report):
    """Kills each of the three processes in a separate server. Long prompts keep engine and worker inside their steps."""
    for victim, expected in VICTIMS.items():
        folder = machine.folder / f"killed-{victim}"
        with Server(machine, folder) as server:
            pid = next(pid for name, pid in server.processes().items() if name.startswith(victim))
            late = asyncio.run(kill_under_load(server, pid))
            wait_until_dead(server, "EngineCore")
        check_victim(machine, report, folder, (victim, pid), late)
        trace = merged(machine, report, f"killed_{victim}", folder)
        check_open_spans(report, victim, expected, [event for event in trace.events if event["ph"] == "B" and event["pid"] == pid])


def check_open_spans(report, victim, expected, spans):
    """Checks that each span that the kill left open identifies its work."""
    names = sorted({span["name"] for span in spans})
    report.result(f"killed_{victim}_unfinished_spans", len(spans), *names)
    if victim == "Worker":  # it was killed in a step
        report.check("killed_Worker_in_a_call", CALLS & set(names), *names)
    for name, args in expected.items():
        found = [span.get("args", {}) for span in spans if span["name"] == name]
        identified = [one for one in found if all(one.get(arg) not in (None, "", []) for arg in args)]
        if name in CALLS and not found:
            continue
        report.check(f"killed_{victim}_{name}_has_{'_'.join(args)}", found and len(identified) == len(found), f"{len(identified)} of {len(found)}")


def check_victim(machine, report, folder, killed, late):
    """Checks that report, doctor and status name the victim as the first to die, before a merge has settled anything. Each answer of the server must be a request."""
    victim, pid = killed
    outputs = {command: machine.run(command, folder).stdout for command in ("doctor", "status")}
    found = machine.report(folder)
    first = found["findings"][0]
    report.check(f"killed_{victim}_first_finding", first["rule"] == "crash" and f"(pid {pid}) died first" in first["evidence"], first["evidence"])
    for command, text in outputs.items():
        report.check(f"killed_{victim}_{command}_agrees", names_first(text, pid), text[-900:])
    if victim == "Worker":
        crash, requests = found["crash"], found["requests"]
        report.check("killed_Worker_with_its_requests", crash["requests"] > 0, crash["requests"], crash["step"])
        report.check("killed_Worker_counts_each_request", PROMPTS + late <= requests["n"] <= PROMPTS + LATE, f"{requests['n']} of {PROMPTS + late}, {late} came late, {requests['failed']} failed")
