"""A worker killed by SIGKILL in the middle of a step."""

import asyncio
import contextlib
import os
import signal
import time

from client import connect, prompt_of
from server import Server
from trace import Trace, check_import

PROMPTS = 64


def run(machine, report):
    """Long prompts keep the worker in its steps; it is killed in one of them."""
    folder = machine.folder / "killed"
    with Server(machine, folder) as server:
        worker = server.worker()
        asyncio.run(kill_under_load(server, worker))
        wait_until_dead(server, worker)
    path, merged = machine.merge(folder)
    report.check("killed_merge", merged.returncode == 0, merged.stderr.strip().splitlines()[0])
    trace = Trace(path)
    in_worker = [event for event in trace.events if "Worker" in trace.processes.get(event["pid"], "")]
    open_spans = [event["name"] for event in in_worker if event["ph"] == "B"]
    report.result("killed_unfinished_spans", len(open_spans), *open_spans)
    report.check("killed_step_is_unfinished", "WorkerWrapperBase.execute_model" in open_spans)
    failed = [event for event in trace.by_name["EngineCore.step"] if event.get("args", {}).get("error")]
    report.result("killed_engine_step_error", failed[-1]["args"]["error"] if failed else "none")
    check_import(machine, report, "killed", path)


async def kill_under_load(server, worker):
    """Sends more long prompts than one step can take, and kills the worker while it is at those that are left."""
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
    os.kill(worker, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.gather(*answers, return_exceptions=True), 60)


def wait_until_dead(server, worker, seconds=60):
    """Until the engine has noticed."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and any("EngineCore" in title for title in server.pids().values()):
        time.sleep(0.5)
