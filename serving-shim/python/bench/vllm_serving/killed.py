"""A process killed by SIGKILL under load: the trace names the requests and the batch that it was at."""

import asyncio
import contextlib
import os
import signal
import time

from client import connect, prompt_of
from server import Server
from trace import Trace, check_import

PROMPTS = 64
STEP = ("request_ids", "tokens", "prefill_requests")
# Which of a step's calls a kill leaves open depends on its moment.
CALLS = {"WorkerWrapperBase.execute_model", "model_runner.sample_tokens", "executor.execute_model", "executor.sample_tokens"}
# A process to kill, and of each span that its kill leaves open, the args by which a reader knows who it was.
VICTIMS = {
    "Worker": {name: STEP for name in ("WorkerWrapperBase.execute_model", "model_runner.sample_tokens")},
    "EngineCore": {"request": ("request_id", "prompt_tokens")} | {name: STEP for name in ("executor.execute_model", "executor.sample_tokens")},
    "APIServer": {
        "http.request": ("method", "path", "x_request_id"),
        "AsyncLLM.generate": ("external_id",),
        "request": ("request_id", "prompt_tokens", "max_tokens"),
    },
}


def run(machine, report):
    """Long prompts keep engine and worker in their steps. Each of the three processes is killed in a server of its own."""
    for victim, expected in VICTIMS.items():
        folder = machine.folder / f"killed-{victim}"
        with Server(machine, folder) as server:
            pid = next(pid for name, pid in server.processes().items() if name.startswith(victim))
            asyncio.run(kill_under_load(server, pid))
            wait_until_dead(server)
        path, merged = machine.merge(folder)
        report.check(f"killed_{victim}_merge", merged.returncode == 0, merged.stderr.strip().splitlines()[0])
        check_open_spans(report, victim, expected, [event for event in Trace(path).events if event["ph"] == "B" and event["pid"] == pid])
        check_import(machine, report, f"killed_{victim}", path)


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
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.gather(*answers, return_exceptions=True), 60)


def wait_until_dead(server, seconds=60):
    """Until the engine has noticed."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and any("EngineCore" in title for title in server.pids().values()):
        time.sleep(0.5)
