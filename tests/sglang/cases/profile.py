"""Switches a paused run with SGLang's routes: `/start_profile` with a number of steps ends by itself, and without one ends with `/stop_profile`."""

import asyncio
import json
import time
import urllib.request

from client import load
from server import Server
from trace import merged

STEPS = 5
TOKENS = 600  # long answers, so that there are steps as long as it takes to start
LATE_S = 1  # maximum time until the processes learn that enough steps are recorded
SECONDS = 60
QUICK = {"activities": ["CPU"], "with_stack": False}  # for SGLang's own profiler, which otherwise takes minutes to write its trace


def run(machine, report):
    """Runs one paused server. SGLang's own profiler also runs, and writes into the same folder."""
    folder = machine.folder / "profile"
    with Server(machine, folder, SA_PROFILE_START="paused", SGLANG_TORCH_PROFILER_DIR=str(folder / "torch")) as server:
        asyncio.run(load(server, 4, 8, 8))
        report.check("profile_is_paused", not is_recording(machine, folder), levels(machine, folder))
        limited = asyncio.run(profile_steps(machine, server, folder))
        report.check("profile_ends_after_its_steps", limited["ended"], levels(machine, folder))
        window = asyncio.run(profile_window(machine, server, folder, report))
    trace = merged(machine, report, "profile", folder)
    batches = sorted((trace.base_ns + span["ts"] * 1000, span.get("dur", 0) / 1e6) for span in trace.by_name["Scheduler.run_batch"])
    in_steps = [(ns / 1e9, ns / 1e9 + dur_s) for ns, dur_s in batches if limited["from_ns"] <= ns <= limited["to_ns"]]
    in_window = [ns for ns, _ in batches if window[0] <= ns <= window[1]]
    late_s = [start_s - in_steps[STEPS - 1][1] for start_s, _ in in_steps[STEPS:]]  # SGLang's profiler may write its trace within a batch
    report.check("profile_records_the_steps", len(in_steps) >= STEPS and max(late_s, default=0) <= LATE_S, f"{STEPS} batches, and {len(late_s)} in {max(late_s, default=0):.3f} s")
    report.check("profile_records_until_stop", len(in_window) > STEPS, f"{len(in_window)} batches")
    report.check("profile_records_nothing_else", len(batches) == len(in_steps) + len(in_window), f"{len(batches)} in all")


async def profile_steps(machine, server, folder):
    """Profiles some steps under load. Returns when it began, and when and whether it ended."""
    under_load = asyncio.ensure_future(load(server, 4, 4, TOKENS))
    await asyncio.sleep(1)
    from_ns = time.monotonic_ns()
    await asyncio.to_thread(post, server, "/start_profile", num_steps=STEPS, **QUICK)
    await under_load  # the processes switch some time after the answer of the route
    ended = await asyncio.to_thread(wait_until, lambda: not is_recording(machine, folder))
    return {"from_ns": from_ns, "to_ns": time.monotonic_ns(), "ended": ended}


async def profile_window(machine, server, folder, report):
    """Profiles from one route to the other under load. Returns when it began and ended."""
    from_ns = time.monotonic_ns()
    await asyncio.to_thread(post, server, "/start_profile", **QUICK)
    report.check("profile_starts", await asyncio.to_thread(wait_until, lambda: is_recording(machine, folder)), levels(machine, folder))
    await load(server, 4, 4, 16)
    await asyncio.to_thread(post, server, "/stop_profile")
    report.check("profile_stops", await asyncio.to_thread(wait_until, lambda: not is_recording(machine, folder)), levels(machine, folder))
    return from_ns, time.monotonic_ns()


def post(server, path, **body):
    """Calls a route of SGLang."""
    request = urllib.request.Request(server.url(path), json.dumps(body).encode(), {"content-type": "application/json"})
    urllib.request.urlopen(request, timeout=300).read()


def levels(machine, folder):
    """Returns the levels that each process records. A paused one has none."""
    return {process["name"]: process["levels"] for process in machine.status(folder)["processes"]}


def is_recording(machine, folder):
    """Returns true if any process records."""
    return any(levels(machine, folder).values())


def wait_until(condition):
    """Waits until a condition holds. Returns false if it does not hold in time."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.2)
    return False
