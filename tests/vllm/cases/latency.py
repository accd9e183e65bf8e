"""Compares latencies in the trace with the client's clock, and checks that every request is linked from HTTP to its end."""

import asyncio
import json
import os
import subprocess
import time

from client import realtime_priority, load
from server import Server
from trace import TPQ, merged

CLOSE_MS = 2.0  # at concurrency 1
MONOTONIC_COARSE = 6  # CLOCK_MONOTONIC_COARSE of linux/time.h
# Smallest difference whose order counts: arrival times are only known to half a kernel tick in either direction.
ORDERED_MS = 1000 * time.clock_getres(MONOTONIC_COARSE)
QUANTILES = (0.5, 0.9, 0.95, 0.99)
LINKS = [
    ("http.request", "request"),
    ("request", "EngineCore.preprocess_add_request"),
    ("EngineCore.preprocess_add_request", "EngineCore.input_queue"),
    ("EngineCore.add_request", "scheduler.schedule"),
    ("scheduler.schedule", "WorkerWrapperBase.execute_model"),
    ("WorkerWrapperBase.execute_model", "OutputProcessor.process_outputs"),
]
LINKED = """select so.name, si.name, count(*) from flow join slice so on so.id = flow.slice_out join slice si
on si.id = flow.slice_in group by 1, 2"""


def run(machine, report):
    """Runs one recording server with requests one by one, then many at once."""
    options = machine.options
    folder = machine.folder / "latency"
    load_before = os.getloadavg()[0]
    with Server(machine, folder) as server:
        with realtime_priority():
            asyncio.run(load(server.port, 4, 16, 8))  # warms up
            alone = asyncio.run(load(server.port, 1, 32, options.tokens))
            together = asyncio.run(load(server.port, options.concurrency, options.requests, options.tokens))
        names = sorted(server.pids().values())
    trace = merged(machine, report, "latency", folder)
    report.result("load_average_before", load_before)
    report.result("processes", len(names), *sorted(set(trace.processes.values())))
    ours = reported(machine, folder, trace)
    compare(report, "c1", alone, ours)
    compare(report, f"c{options.concurrency}", together, ours)
    check_arrivals(report, alone + together, trace)
    check_steps(report, alone + together, trace)
    check_links(report, trace.path, len(trace.answered()))


def reported(machine, folder, trace):
    """Returns external id → (TTFT, E2E) in ms from `sa-profile report`. Both start when the request reached the kernel."""
    requests = {one["request_id"]: one for one in machine.report(folder)["request"]}
    found = {}
    for external_id, request_id in trace.answered().items():
        one = requests.get(request_id, {})
        times = [one.get(name) for name in ("arrival_ns", "first_chunk_ns", "finished_ns")]
        if None not in times:
            arrival_ns, first_chunk_ns, finished_ns = times  # all answers are streamed
            found[external_id] = ((first_chunk_ns - arrival_ns) / 1e6, (finished_ns - arrival_ns) / 1e6)
    return found


def compare(report, label, timings, ours):
    """Compares each request's latencies on the client's clock with those in the report."""
    report.check(f"{label}_all_in_report", all(one.request_id in ours for one in timings), f"{len(timings)} requests")
    pairs = [(one, ours[one.request_id]) for one in timings if one.request_id in ours]
    for what, client_value, at in (("ttft", lambda one: one.ttft_ms, 0), ("e2e", lambda one: one.e2e_ms, 1)):
        values = [(client_value(one), times[at]) for one, times in pairs]
        if label == "c1":
            differences = sorted(abs(client - ours) for client, ours in values)
            worst = differences[-1]
            report.result(f"{label}_{what}_difference_p50_ms", quantile(differences, 0.5), "p90", f"{quantile(differences, 0.9):.3g}")
            report.result(f"{label}_{what}_largest_difference_ms", worst, f"of {quantile([c for c, _ in values], 0.5):.1f} ms")
            report.check(f"{label}_{what}_within_{CLOSE_MS:g}_ms", worst <= CLOSE_MS)
        else:
            compare_many(report, f"{label}_{what}", values)


def check_arrivals(report, timings, trace):
    """Checks that each request arrived after its client had sent it, within the uncertainty in the trace."""
    arrivals = trace.arrivals()
    late_ms = []
    for one in timings:
        arrived_ns, uncertainty_ns = arrivals[one.request_id]
        late_ms.append((arrived_ns + uncertainty_ns - one.sent_ns) / 1e6)
    report.result("arrival_after_sending_ms", min(late_ms), f"at least, with its uncertainty, of {len(late_ms)} requests")
    report.check("none_arrives_before_it_was_sent", min(late_ms) >= 0)


def compare_many(report, label, values):
    """Compares quantiles, and the order of all pairs that differ by more than the clocks may."""
    client, ours = [one for one, _ in values], [one for _, one in values]
    for at in QUANTILES:
        theirs, mine = quantile(client, at), quantile(ours, at)
        off = abs(mine - theirs) / theirs
        report.result(f"{label}_p{at * 100:g}_ms", mine, f"client {theirs:.2f}, {off:.2%} apart")
        report.check(f"{label}_p{at * 100:g}_within_5_percent", off <= 0.05)
    apart = [(a, b) for at, a in enumerate(values) for b in values[at + 1 :] if abs(a[0] - b[0]) > ORDERED_MS]
    swapped = sum((a[0] < b[0]) != (a[1] < b[1]) for a, b in apart)
    report.result(f"{label}_pairs_in_another_order", swapped, f"of {len(apart)} that differ by more than {ORDERED_MS:g} ms")
    report.check(f"{label}_same_order", swapped <= len(apart) / 100)


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


def check_links(report, path, requests):
    """Checks the arrows that the viewer shows between the spans of each request."""
    done = subprocess.run([TPQ, str(path), LINKED], capture_output=True, text=True)
    if done.returncode == 3:
        report.skip("links", done.stderr.strip())
        return
    counts = {(out, into): count for out, into, count in json.loads(done.stdout)}
    for out, into in LINKS:
        found = counts.get((out, into), 0)
        report.check(f"linked_{out}_to_{into}", found == requests, f"{found} of {requests}")


def quantile(values, at):
    """Returns an interpolated quantile."""
    ordered = sorted(values)
    place = at * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
