"""A process killed by SIGKILL under load: the trace names the requests and the batch that it was at."""

import asyncio
import contextlib
import os
import re
import signal
import time

from client import connect, prompt_of
from server import Server
from trace import merged

PROMPTS = 64
LATE = 8  # requests that come when the process is dead
STEP = ("request_ids", "tokens", "prefill_requests")
# Which of a step's calls a kill leaves open depends on its moment.
CALLS = {"WorkerWrapperBase.execute_model", "model_runner.sample_tokens", "executor.execute_model", "executor.sample_tokens"}
# A process to kill, and of each span that its kill leaves open, the args by which a reader knows who it was.
VICTIMS = {
    "Worker": {name: STEP for name in ("WorkerWrapperBase.execute_model", "model_runner.sample_tokens")},
    "EngineCore": {"request": ("request_id", "prompt_tokens")} | {name: STEP for name in ("executor.execute_model", "executor.sample_tokens")},
    "APIServer": {
        "http.request": ("method", "path", "x_request_id"),
        "request": ("request_id", "external_id", "prompt_tokens", "max_tokens"),
    },
}


def run(machine, report):
    """Long prompts keep engine and worker in their steps. Each of the three processes is killed in a server of its own."""
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
    """Each of those that the kill left open says whose it is."""
    names = sorted({span["name"] for span in spans})
    report.result(f"killed_{victim}_unfinished_spans", len(spans), *names)
    if victim == "Worker":  # it was killed in a step
        report.check("killed_Worker_in_a_call", CALLS & set(names), *names)
    for name, args in expected.items():
        found = [span.get("args", {}) for span in spans if span["name"] == name]
        known = [one for one in found if all(one.get(arg) not in (None, "", []) for arg in args)]
        if name in CALLS and not found:
            continue
        report.check(f"killed_{victim}_{name}_has_{'_'.join(args)}", found and len(known) == len(found), f"{len(known)} of {len(found)}")


def check_victim(machine, report, folder, killed, late):
    """Report, doctor and status say that it died first, before a merge has settled anything. Each answer of the server is a request."""
    victim, pid = killed
    said = {command: machine.run(command, folder).stdout for command in ("doctor", "status")}
    found = machine.report(folder)
    first = found["findings"][0]
    report.check(f"killed_{victim}_first_finding", first["rule"] == "crash" and f"(pid {pid}) died first" in first["evidence"], first["evidence"])
    for command, text in said.items():
        report.check(f"killed_{victim}_{command}_agrees", names_first(text, pid), text[-900:])
    if victim == "Worker":
        crash, requests = found["crash"], found["requests"]
        report.check("killed_Worker_with_its_requests", crash["requests"] > 0, crash["requests"], crash["step"])
        report.check("killed_Worker_counts_each_request", PROMPTS + late <= requests["n"] <= PROMPTS + LATE, f"{requests['n']} of {PROMPTS + late}, {late} came late, {requests['failed']} failed")


def names_first(text, pid):
    """Returns whether the list of killed processes begins with this one."""
    lines = [line.partition("killed: ")[2] for line in text.splitlines() if "killed: " in line]
    first = re.search(r"[\[(](?:pid )?(\d+)[\])]", lines[0]) if lines else None
    return len(lines) == 1 and first is not None and int(first[1]) == pid


async def ask_late(server):
    """Requests that come when a process is dead, until the server has noticed. Returns how many of them it answered with a status of 500 or more."""
    answers = [await connect(server.port) for _ in range(LATE)]
    answers = [stream.send(server.port, prompt_of(12), 8) for stream in answers]
    ended = await asyncio.wait_for(asyncio.gather(*answers, return_exceptions=True), 60)
    return sum(str(one).startswith("HTTP/1.1 5") for one in ended)


async def kill_under_load(server, pid):
    """Sends more long prompts than one step can take, and kills the process while those that are left are under way."""
    began = asyncio.Event()
    streams = [await connect(server.port) for _ in range(PROMPTS)]
    for stream in streams:
        stream.on_chunks = lambda chunks, _now: began.set() if chunks else None
    answers = [stream.send(server.port, prompt_of(180), 200) for stream in streams]
    first = asyncio.ensure_future(began.wait())
    done, _ = await asyncio.wait([first, *answers], timeout=120, return_when=asyncio.FIRST_COMPLETED)
    if first not in done:
        first.cancel()
        await asyncio.gather(*done)  # says why a request was refused
        raise TimeoutError("no output came")
    await asyncio.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    late = 0
    with contextlib.suppress(TimeoutError, OSError):
        late = await ask_late(server)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.gather(*answers, return_exceptions=True), 60)
    return late


def wait_until_dead(server, seconds=60):
    """Until the engine has noticed."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and any("EngineCore" in title for title in server.pids().values()):
        time.sleep(0.5)
