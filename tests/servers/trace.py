"""Requests in a merged trace."""

import json
import subprocess
from collections import defaultdict
from pathlib import Path

TPQ = Path(__file__).resolve().parents[1] / "perfetto/tpq"


class Trace:
    """A merged trace."""

    def __init__(self, path):
        self.path = path
        with open(path) as file:
            trace = json.load(file)
        self.events, self.base_ns = trace["traceEvents"], trace["otherData"]["base_ns"]
        self.by_name = defaultdict(list)
        for event in self.events:
            self.by_name[event["name"]].append(event)
        self.by_track = defaultdict(list)
        for event in self.events:
            if event["ph"] == "X":
                self.by_track[event["pid"], event["tid"]].append(event)
        chunks = [event["args"] for event in self.by_name["http.first_chunk"]]
        self.first_chunks = {one: args["elapsed_us"] for args in chunks for one in args["request_ids"]}
        names = self.by_name["process_name"]
        self.processes = {event["pid"]: event["args"]["name"] for event in names}

    def within(self, span):
        """Returns the span and all spans that began within it on the same track."""
        until = span["ts"] + span["dur"]
        return [one for one in self.by_track[span["pid"], span["tid"]] if span["ts"] <= one["ts"] < until]

    def first(self, value, name, arg):
        """Returns the first span of this name with this value of an arg, or `None`."""
        found = (span for span in self.by_name[name] if span.get("args", {}).get(arg) == value)
        return next(found, None)

    def answered(self):
        """Returns external id → internal id of each HTTP request that was answered in chunks."""
        args = [span.get("args", {}) for span in self.by_name["http.request"]]
        answered = [one for one in args if "answered_us" in one and one.get("external_ids") and one["request_ids"][0] in self.first_chunks]
        return {external_id: one["request_ids"][0] for one in answered for external_id in one["external_ids"]}

    def arrivals(self):
        """Returns external id → (time of the first byte, its uncertainty), in ns of the monotonic clock."""
        found = {}
        for span in self.by_name["http.request"]:
            args = span.get("args", {})
            arrived_ns = self.base_ns + (span["ts"] - args.get("waited_us", 0)) * 1000
            found |= dict.fromkeys(args.get("external_ids", ()), (arrived_ns, args.get("uncertainty_us", 0) * 1000))
        return found

    def steps(self, name):
        """Returns internal id → number of spans of this name that have it in `request_ids`."""
        counts = defaultdict(int)
        for span in self.by_name[name]:
            for request_id in span.get("args", {}).get("request_ids", ()):
                counts[request_id] += 1
        return counts

    def finished(self):
        """Returns internal id → the engine's args of the request's end."""
        return {event["args"]["request_id"]: event["args"] for event in self.by_name["request.finished"]}


def merged(machine, report, label, folder):
    """Merges a run and loads its trace in the trace processor, which must find no error and no lost data. Returns the trace."""
    path = folder / "trace.json"
    done = subprocess.run([machine.program("trace-merge"), str(folder)], capture_output=True, text=True)
    report.check(f"{label}_merge", done.returncode == 0, done.stderr.strip().splitlines()[0])
    done = subprocess.run([TPQ, "--check", str(path)], capture_output=True, text=True)
    if done.returncode == 3:
        report.skip(label, done.stderr.strip())
    else:
        report.check(f"{label}_import_without_errors", done.returncode == 0, done.stdout.strip(), done.stderr.strip())
    return Trace(path)
