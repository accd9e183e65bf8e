"""Stops a worker, then the engine, with SIGSTOP for 0.2 s of every second under load. The report must blame the stopped process."""

import asyncio
import contextlib
import os
import signal
import time

from client import connect, load, random_prompt
from server import Server
from trace import merged

TURNS = 10
STOPPED_S = 0.2
TURN_S = 1.0
CONCURRENCY = 16
# Causes that blame each process in a server without a device.
BLAMED = {
    "Worker": {"worker"},
    "EngineCore": {"engine", "scheduling", "output", "frontend"},
}


def run(machine, report):
    """Runs one server under load. For a while each, no process, the worker and the engine are stopped."""
    folder = machine.folder / "stopped"
    with Server(machine, folder) as server:
        windows = asyncio.run(stop_in_turn(server))
    trace = merged(machine, report, "stopped", folder)
    base_ns = trace.base_ns
    causes = {victim: idle_causes(machine, trace.path, from_ns - base_ns, to_ns - base_ns) for victim, (from_ns, to_ns) in windows.items()}
    for victim, blamed in BLAMED.items():
        check_causes(report, victim, blamed, causes["nobody"], causes[victim])


async def stop_in_turn(server):
    """Returns stopped process → its window in ns of the monotonic clock. `nobody` is a window without stops."""
    processes = server.processes()
    await load(server, 4, 16, 8)  # warms up
    under_load = asyncio.gather(*(keep_sending(server) for _ in range(CONCURRENCY)))
    windows = {}
    try:
        await asyncio.sleep(1)
        for victim in ("nobody", *BLAMED):
            pid = next((pid for name, pid in processes.items() if name.startswith(victim)), None)
            began_ns = time.monotonic_ns()
            await stop_often(pid)
            windows[victim] = (began_ns, time.monotonic_ns())
            await asyncio.sleep(1)
    finally:
        under_load.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await under_load
    return windows


async def keep_sending(server):
    """Streams one request after the other until it is cancelled."""
    stream = await connect(server)
    try:
        while True:
            await stream.send(random_prompt(12), 48)
    finally:
        stream.transport.close()  # a server that shuts down waits for its clients


async def stop_often(pid):
    """Stops a process for a part of each turn. Without a process, only waits."""
    for _ in range(TURNS):
        if pid is not None:
            os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(STOPPED_S)
        if pid is not None:
            os.kill(pid, signal.SIGCONT)
        await asyncio.sleep(TURN_S - STOPPED_S)


def idle_causes(machine, path, from_ns, to_ns):
    """Returns the seconds of each cause in a window of the trace."""
    window = ["--from", f"{from_ns / 1e6:.3f}ms", "--to", f"{to_ns / 1e6:.3f}ms"]
    (device,) = machine.report(path, *window)["idle"]
    return {cause["cause"]: cause["ns"] / 1e9 for cause in device["causes"]}


def check_causes(report, victim, blamed, quiet, stopped):
    """Compares the causes of two windows of equal length. The stopped process must account for the difference.

    If the worker is stopped within a step, that is not idle time, and on a busy machine most stops are. In that case the other causes must not have grown instead.
    """
    grown = {cause: stopped.get(cause, 0) - quiet.get(cause, 0) for cause in sorted(quiet.keys() | stopped.keys())}
    own = sum(seconds for cause, seconds in grown.items() if cause in blamed)
    others = sum(seconds for cause, seconds in grown.items() if cause not in blamed and seconds > 0)
    report.result(f"stopped_{victim}_idle_s", own, "more than while nobody is stopped:", ", ".join(f"{cause} {seconds:+.3f}" for cause, seconds in grown.items()))
    stopped_s = TURNS * STOPPED_S
    in_steps = victim == "Worker" and own > 0 and others < stopped_s / 4
    report.check(f"stopped_{victim}_is_blamed", own > max(stopped_s / 2, 2 * others) or in_steps, f"{own:.3f} s, all others {others:.3f} s")
