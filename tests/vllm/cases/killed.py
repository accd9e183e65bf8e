"""Kills a process with SIGKILL under load. The trace must name its current requests and batch."""

import asyncio
import contextlib
import os
import re
import signal
import time

from client import connect, random_prompt
from server import Server
from trace import merged

PROMPTS = 64
LATE = 8  # requests sent after the process is dead
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
            wait_until_dead(server)
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


def names_first(text, pid):
    """Returns true if the list of killed processes begins with this one."""
    lines = [line.partition("killed: ")[2] for line in text.splitlines() if "killed: " in line]
    first = re.search(r"[\[(](?:pid )?(\d+)[\])]", lines[0]) if lines else None
    return len(lines) == 1 and first is not None and int(first[1]) == pid


async def send_late_requests(server):
    """Sends requests after a process has died, until the server has noticed. Returns how many were answered with a status of 500 or more."""
    answers = [await connect(server.port) for _ in range(LATE)]
    answers = [stream.send(server.port, random_prompt(12), 8) for stream in answers]
    ended = await asyncio.wait_for(asyncio.gather(*answers, return_exceptions=True), 60)
    return sum(str(one).startswith("HTTP/1.1 5") for one in ended)


async def kill_under_load(server, pid):
    """Sends more long prompts than one step can process, and kills the process while some are still running."""
    began = asyncio.Event()
    streams = [await connect(server.port) for _ in range(PROMPTS)]
    for stream in streams:
        stream.on_chunks = lambda chunks, _now: began.set() if chunks else None
    answers = [stream.send(server.port, random_prompt(180), 200) for stream in streams]
    first = asyncio.ensure_future(began.wait())
    done, _ = await asyncio.wait([first, *answers], timeout=120, return_when=asyncio.FIRST_COMPLETED)
    if first not in done:
        first.cancel()
        await asyncio.gather(*done)  # raises the reason if a request was refused
        raise TimeoutError("no output arrived")
    await asyncio.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    late = 0
    with contextlib.suppress(TimeoutError, OSError):
        late = await send_late_requests(server)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.gather(*answers, return_exceptions=True), 60)
    return late


def wait_until_dead(server, seconds=60):
    """Waits until the engine has noticed."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and any("EngineCore" in title for title in server.pids().values()):
        time.sleep(0.5)
