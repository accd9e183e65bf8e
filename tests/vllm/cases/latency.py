"""Compares latencies in the trace with the client's clock, and checks that every request is linked from HTTP to its end."""

import asyncio
import os

from client import load, realtime_priority
from latencies import compare, reported
from links import check_links
from server import Server
from trace import merged

LINKS = [
    ("http.request", "request"),
    ("request", "EngineCore.preprocess_add_request"),
    ("EngineCore.preprocess_add_request", "EngineCore.input_queue"),
    ("EngineCore.add_request", "scheduler.schedule"),
    ("scheduler.schedule", "WorkerWrapperBase.execute_model"),
    ("WorkerWrapperBase.execute_model", "OutputProcessor.process_outputs"),
]


def run(machine, report):
    """Runs one recording server with requests one by one, then many at once."""
    options = machine.options
    folder = machine.folder / "latency"
    load_before = os.getloadavg()[0]
    with Server(machine, folder) as server:
        with realtime_priority():
            asyncio.run(load(server, 4, 16, 8))  # warms up
            alone = asyncio.run(load(server, 1, 32, options.tokens))
            together = asyncio.run(load(server, options.concurrency, options.requests, options.tokens))
        names = sorted(server.pids().values())
    trace = merged(machine, report, "latency", folder)
    report.result("load_average_before", load_before)
    report.result("processes", len(names), *sorted(set(trace.processes.values())))
    ours = reported(machine, folder, trace)
    compare(report, "c1", alone, ours)
    compare(report, f"c{options.concurrency}", together, ours)
    check_arrivals(report, alone + together, trace)
    check_steps(report, alone + together, trace)
    check_links(report, trace.path, LINKS, len(trace.answered()))


def check_arrivals(report, timings, trace):
    """Checks that each request arrived after its client had sent it, within the uncertainty in the trace."""
    arrivals = trace.arrivals()
    late_ms = []
    for one in timings:
        arrived_ns, uncertainty_ns = arrivals[one.request_id]
        late_ms.append((arrived_ns + uncertainty_ns - one.sent_ns) / 1e6)
    report.result("arrival_after_sending_ms", min(late_ms), f"at least, with its uncertainty, of {len(late_ms)} requests")
    report.check("none_arrives_before_it_was_sent", min(late_ms) >= 0)


def check_steps(report, timings, trace):
    """Checks that each request finished, and was in as many steps of engine and worker as it has output steps."""
    answered, finished = trace.answered(), trace.finished()
    sent = {answered[one.request_id]: one.tokens for one in timings if one.request_id in answered}
    ids = list(sent)
    engine, worker = trace.steps("scheduler.schedule"), trace.steps("WorkerWrapperBase.execute_model")
    whole = [one for one in ids if finished.get(one, {}).get("output_tokens") == sent[one]]
    report.check("requests_finished_with_their_tokens", len(whole) == len(ids), f"{len(whole)} of {len(ids)}")
    stepped = [one for one in whole if engine[one] >= finished[one]["output_steps"] and worker[one] == engine[one]]
    report.check("requests_in_each_of_their_steps", len(stepped) == len(ids), f"{len(stepped)} of {len(ids)}")
