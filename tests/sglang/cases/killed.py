"""Kills the scheduler with SIGKILL under load. The trace and the report must name its batch and the requests in it."""

import asyncio

from killing import PROMPTS, kill_under_load, names_first, wait_until_dead
from server import PREFIX, Server
from trace import merged

BATCH = ("batch", "mode", "tokens", "request_ids")


def run(machine, report):
    """Kills the scheduler of one server. Long prompts keep it inside its batches."""
    folder = machine.folder / "killed"
    with Server(machine, folder) as server:
        pid = server.scheduler()
        asyncio.run(kill_under_load(server, pid))
        wait_until_dead(server, f"{PREFIX}scheduler")
    check_report(machine, report, folder, pid)
    trace = merged(machine, report, "killed", folder)
    own = [event for event in trace.events if event["pid"] == pid]
    launches = {event["args"]["batch"]: event["args"] for event in own if event["name"] == "Scheduler.run_batch" and event["ph"] in "BX"}
    check_open_spans(report, [event for event in own if event["ph"] == "B"], launches)


def check_report(machine, report, folder, pid):
    """Checks that report, doctor and status name the scheduler as the first to die, before a merge has settled anything."""
    outputs = {command: machine.run(command, folder).stdout for command in ("doctor", "status")}
    found = machine.report(folder)
    first = found["findings"][0] if found["findings"] else {"rule": "", "evidence": ""}
    report.check("killed_first_finding", first["rule"] == "crash" and f"(pid {pid}) died first" in first["evidence"], first["evidence"])
    for command, text in outputs.items():
        report.check(f"killed_{command}_agrees", names_first(text, pid), text[-900:])
    crash, requests = found["crash"] or {}, found["requests"]
    report.check("killed_with_its_requests", crash.get("requests", 0) > 0, crash.get("requests"), crash.get("step"))
    report.check("killed_counts_each_request", requests["n"] >= PROMPTS, f"{requests['n']} of {PROMPTS}, {requests['failed']} failed, {requests['unfinished']} unfinished")


def check_open_spans(report, spans, launches):
    """Checks that the spans that the kill left open identify their work. `launches` has the args of each batch's launch, by its number."""
    names = sorted({span["name"] for span in spans})
    report.result("killed_unfinished_spans", len(spans), *names)
    requests = [span["args"] for span in spans if span["name"] == "request"]
    report.check("killed_requests_are_open", requests and all(one.get("request_id") and one.get("prompt_tokens") for one in requests), f"{len(requests)} of {PROMPTS}")
    numbers = sorted({span["args"]["batch"] for span in spans if span["name"] in ("Scheduler.run_batch", "batch")})
    batches = [launches.get(number, {}) for number in numbers]
    report.check("killed_batch_is_open", batches and all(one.get(arg) not in (None, "", []) for one in batches for arg in BATCH), *batches)
    known = {one["request_id"] for one in requests}
    report.check("killed_batch_has_open_requests", batches and all(known & set(one.get("request_ids", ())) for one in batches))
