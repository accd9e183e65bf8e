"""The NPUs in a merged trace: the slices of their streams, each with its launch on the host and the arrow between them."""

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Span:
    """A span on a thread of the host, or on a stream of a device. Times are of CLOCK_MONOTONIC in ns."""

    pid: int
    tid: int
    begin_ns: float
    end_ns: float
    name: str
    args: dict


@dataclass(frozen=True)
class Slice:
    """A span on a device."""

    span: Span
    #: The process that owns the device's tracks, the device, the stream.
    place: tuple[int, int, int]
    launch: int


class Trace:
    def __init__(self, path: Path) -> None:
        content = json.loads(path.read_text())
        self.events = content["traceEvents"]
        self.lost = content["otherData"]["lost_events"]
        self.damage = content["otherData"]["damage"]
        self._base_ns = int(content["otherData"]["base_ns"])
        self._owners = self._read_owners()
        streams = self._named("thread_name", re.compile(r"Stream (\d+)(?: \(MSPTI\))?(?: \(overlapping \d+\))?$"))
        self._streams = {(event["pid"], event["tid"]): int(found[1]) for event, found in streams}
        spans = [self._span(event) for event in self.events if event["ph"] == "X"]
        launched = [span for span in spans if "launch" in span.args]
        self.slices = [self._slice(span) for span in launched if "uncertainty_us" in span.args]
        #: Number of MSPTI's records by place, name and number.
        self.records = Counter(self._record(span) for span in spans if span.args.get("device_method") == "mspti")
        self.hosts = {(span.pid, span.args["launch"]): span for span in launched if "uncertainty_us" not in span.args}

    def _named(self, kind: str, pattern: re.Pattern) -> list[tuple[dict, re.Match]]:
        found = [(event, pattern.match(next(iter(event["args"].values()), ""))) for event in self.events if event["name"] == kind]
        return [(event, match) for event, match in found if match]

    def _read_owners(self) -> dict[int, tuple[int, int]]:
        """Returns owner and device of each process in the trace that represents a device."""
        labels = self._named("process_labels", re.compile(r"SIMULATED NPU (\d+), pid (\d+)"))
        return {event["pid"]: (int(found[2]), int(found[1])) for event, found in labels}

    def time_ns(self, us: float) -> float:
        return self._base_ns + us * 1000

    def _span(self, event: dict) -> Span:
        begin = event["ts"]
        end = begin + event["dur"]
        return Span(event["pid"], event["tid"], self.time_ns(begin), self.time_ns(end), event["name"], event.get("args", {}))

    def _slice(self, span: Span) -> Slice:
        return Slice(span, self._place(span), span.args["launch"])

    def _record(self, span: Span) -> tuple[tuple[int, int, int], str, int]:
        return self._place(span), span.name, span.args["correlation"]

    def _place(self, span: Span) -> tuple[int, int, int]:
        pid, device = self._owners[span.pid]
        return pid, device, self._streams[span.pid, span.tid]

    def arrows(self) -> dict[tuple[int, int, float], list[tuple[int, int, float]]]:
        """Returns the start of the arrow to each (pid, tid, ns)."""
        flows = [event for event in self.events if event.get("cat") == "HostToDevice"]
        place = {(event["id"], event["ph"]): (event["pid"], event["tid"], self.time_ns(event["ts"])) for event in flows}
        if len(place) != len(flows):
            raise ValueError("an arrow begins or ends twice")
        arrows = {}
        for (flow, phase), end in place.items():
            if phase == "f":
                arrows.setdefault(end, []).append(place[flow, "s"])
        return arrows

    def counts(self) -> dict[str, int]:
        """Returns the final counts of launches (`counts.rs` of the shim) over all processes."""
        highest: dict[tuple[int, str], int] = {}
        for event in self.events:
            if event["ph"] == "C" and event["name"] == "launches":
                for series, value in event["args"].items():
                    highest[event["pid"], series] = max(highest.get((event["pid"], series), 0), value)
        return {series: sum(value for (_, other), value in highest.items() if other == series) for _, series in highest}

    def names(self) -> Counter[str]:
        """Returns the names of instants and spans."""
        return Counter(event["name"] for event in self.events if event["ph"] in "Xi")
