"""Leaves a server without requests for a minute. SGLang's scheduler loop spins meanwhile, and nothing may be recorded."""

import asyncio
import time
from collections import Counter

from client import load
from server import Server
from trace import merged

IDLE_S = 60
SETTLE_S = 3  # time after the last request
MOST_BYTES_PER_MINUTE = 4096


def run(machine, report):
    """Runs a server of two ranks, whose processes also wait for each other."""
    folder = machine.folder / "idle"
    with Server(machine, folder, ranks=2) as server:
        asyncio.run(load(server, 4, 8, 8))
        time.sleep(SETTLE_S)
        names = {pid: name for name, pid in server.processes().items()}
        before, from_ns = sizes(machine, folder), time.monotonic_ns()
        time.sleep(IDLE_S)
        to_ns, after = time.monotonic_ns(), sizes(machine, folder)
    report.check("idle_records_each_process", names.keys() == after.keys(), f"{len(after)} of {len(names)}")
    for pid, name in names.items():
        grown = (after[pid] - before[pid]) * 60e9 / (to_ns - from_ns)
        report.check(f"idle_{name}_bytes_per_minute", grown <= MOST_BYTES_PER_MINUTE, f"{grown:.0f}, at most {MOST_BYTES_PER_MINUTE}")
    trace = merged(machine, report, "idle", folder)
    during = [event for event in trace.events if "ts" in event and from_ns <= trace.base_ns + event["ts"] * 1000 <= to_ns]
    report.check("idle_no_event", not during, f"{len(during)} in {IDLE_S} s", dict(Counter(event["name"] for event in during)))


def sizes(machine, folder):
    """Returns pid → number of recorded bytes of the process."""
    return {process["pid"]: process["bytes"] for process in machine.status(folder)["processes"]}
