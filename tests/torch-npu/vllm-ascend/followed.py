"""Checks that each request of a merged trace can be followed: its span, the engine's steps, each worker's steps, their launches, and the slices on the device."""

import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict
from math import inf
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from merged import Trace

#: Launches of which each step of the model has one: attention, or a graph that contains it.
ATTENTION = {"FusedInferAttentionScoreV2", "aclmdlRIExecuteAsync"}

#: Names of a step's span in the engine and in a worker.
STEPS = ("scheduler.schedule", "WorkerWrapperBase.execute_model")


def problems_of(trace: Trace, requests: int, workers: int, tokens: int) -> list[str]:
    """Yields the problems of each request, which had `tokens` output tokens and as many steps."""
    steps, launches = _steps(trace), _launches(trace)
    finished = [event["args"]["request_id"] for event in trace.events if event["name"] == "request.finished"]
    problems = [] if len(finished) == requests else [f"{len(finished)} requests are finished, not {requests}"]
    for request in finished:
        if ("request", request) not in _spans_of_requests(trace):
            problems.append(f"{request}: no span")
        if len(steps["scheduler.schedule", request]) < tokens:
            problems.append(f"{request}: {len(steps['scheduler.schedule', request])} steps of the engine, at least {tokens} were expected")
        own = steps["WorkerWrapperBase.execute_model", request]
        if len({pid for pid, _, _ in own}) != workers or len(own) < tokens * workers:
            problems.append(f"{request}: {len(own)} steps of {len({pid for pid, _, _ in own})} workers, not {tokens} of each of {workers}")
        problems += [f"{request}: a step of worker {pid} has no attention on the device" for pid, begin, end in own if not _within(launches[pid], begin, end)]
    return problems


def _spans_of_requests(trace: Trace) -> set[tuple[str, str]]:
    return {(event["name"], event.get("args", {}).get("request_id", "")) for event in trace.events}


def _steps(trace: Trace) -> dict[tuple[str, str], list[tuple[int, float, float]]]:
    """Returns the steps of a request by name: process, start, and start of the process's next step in µs. torch_npu's thread may launch after the span of a step."""
    ordered = sorted((event["name"], event["pid"], event["ts"], event["args"].get("request_ids", [])) for event in trace.events if event["ph"] == "X" and event["name"] in STEPS)
    steps = defaultdict(list)
    for (name, pid, begin, requests), after in zip(ordered, [*ordered[1:], ("", 0, 0, [])]):
        for request in requests:
            steps[name, request].append((pid, begin, after[2] if after[:2] == (name, pid) else inf))
    return steps


def _launches(trace: Trace) -> dict[int, list[float]]:
    """Returns the times at which each process launched attention that has a slice on the device. torch_npu launches on a separate thread."""
    shown = {(slice.place[0], slice.launch) for slice in trace.slices if slice.span.name in ATTENTION}
    launches = defaultdict(list)
    for event in trace.events:
        if event["ph"] == "X" and (event["pid"], event.get("args", {}).get("launch")) in shown:
            launches[event["pid"]].append(event["ts"])
    return {pid: sorted(times) for pid, times in launches.items()} | {event["pid"]: [] for event in trace.events if event["pid"] not in launches}


def _within(times: list[float], begin: float, end: float) -> int:
    return bisect_right(times, end) - bisect_left(times, begin)
