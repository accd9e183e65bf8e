"""Checks that each request has one id in all processes, and arrows from the HTTP request through scheduler and detokenizer to its answer."""

import asyncio
from collections import defaultdict

from client import load
from server import PREFIX, Server
from trace import merged

WAY = ("http_server", "scheduler", "detokenizer", "http_server")


def run(machine, report):
    """Runs a server of each size. The detokenizer only records the ids of each step at the level `verbose`."""
    for ranks in (1, 2):
        label = f"linked_tp{ranks}"
        folder = machine.folder / label
        with Server(machine, folder, ranks=ranks, SA_PROFILE_LEVEL="verbose") as server:
            timings = asyncio.run(load(server, 8, machine.options.requests, machine.options.tokens))
            timings += asyncio.run(load(server, 4, 8, machine.options.tokens, chat=True))
        trace = merged(machine, report, label, folder)
        sent = [one.request_id for one in timings]
        check_ids(report, label, trace, sent)
        check_ways(report, label, trace, len(sent))
        check_steps(report, label, trace, timings, ranks)


def role(trace, pid):
    """Returns what a process does, without its rank."""
    return trace.processes.get(pid, "").removeprefix(PREFIX).split("_TP")[0]


def check_ids(report, label, trace, sent):
    """Checks that each process has events with the id that the client chose."""
    found = defaultdict(set)
    for event in trace.events:
        args = event.get("args", {})
        found[role(trace, event["pid"])].update(args.get("request_ids", ()), filter(None, [args.get("request_id")]))
    for process in dict.fromkeys(WAY):
        known = sum(one in found[process] for one in sent)
        report.check(f"{label}_ids_in_{process}", known == len(sent), f"{known} of {len(sent)}")


def check_ways(report, label, trace, requests):
    """Checks that the arrows of each request lead along its way."""
    ways = defaultdict(list)
    for event in sorted(trace.events, key=lambda event: event.get("ts", 0)):
        if event["ph"] in "stf" and event["name"] == "request":
            ways[event["id"]].append(role(trace, event["pid"]))
    whole = sum(contains_in_order(way, WAY) for way in ways.values())
    report.check(f"{label}_from_http_to_http", whole >= requests, f"{whole} of {requests}, {len(ways)} flows")
    report.result(f"{label}_ways", *sorted({"→".join(way) for way in ways.values()}, key=len)[:4])


def contains_in_order(way, stations):
    """Returns true if a way has these stations in this order, with or without others in between."""
    passed = iter(way)
    return all(station in passed for station in stations)


def check_steps(report, label, trace, timings, ranks):
    """Checks that each rank ran each request in as many batches as it has output tokens."""
    for rank in range(ranks):
        counts = defaultdict(int)
        for span in trace.by_name["Scheduler.run_batch"]:
            if ranks == 1 or trace.processes[span["pid"]].endswith(f"_TP{rank}"):
                for request_id in span.get("args", {}).get("request_ids", ()):
                    counts[request_id] += 1
        # The overlap loop launches one more batch before it learns that a request has ended.
        stepped = [one for one in timings if one.tokens <= counts[one.request_id] <= one.tokens + 1]
        report.check(f"{label}_rank_{rank}_requests_in_each_of_their_batches", len(stepped) == len(timings), f"{len(stepped)} of {len(timings)}")
