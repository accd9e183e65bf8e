"""Breaks each request's end-to-end latency down into the spans and waits along its way, and measures what none of them covers."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass

from client import load
from server import Server
from trace import merged

# Tolerance: 2 % of the latency, or 0.5 ms.
SHARE = 0.02
EACH_US = 500.0
# Spans that only contain others and explain nothing.
CONTAINERS = {
    "http.request", "http.endpoint", "request", "request.preprocess", "AsyncLLM.generate",
}
# Waits that have no span: from the end of one span of a request to the start of its next one.
HANDLERS = ("OpenAIServingChat.create_chat_completion", "OpenAIServingCompletion.create_completion")
WAITS = [
    ("event loop, for the handler's task", ("http.validate",), HANDLERS),
    ("event loop, for the task that streams", HANDLERS, ("AsyncLLM.add_request",)),
    ("socket to the engine", ("MsgpackEncoder.encode",), ("EngineCore.preprocess_add_request", "EngineCore.input_queue")),
]
# Waits between two spans of a step.
STEP_WAITS = {
    # The engine's output queue; 0.9.1 has no post_step.
    ("EngineCore.step", "EngineCore.post_step"),
    ("outputs.send", "EngineCore.post_step"),
    ("EngineCore.step", "EngineCore.process_input_queue"),
    ("outputs.send", "EngineCore.process_input_queue"),
    # Socket to the server.
    ("EngineCore.step", "MsgpackDecoder.decode"),
    ("EngineCore.post_step", "MsgpackDecoder.decode"),
    ("MsgpackEncoder.encode_into", "MsgpackDecoder.decode"),
    ("EngineCore.process_input_queue", "MsgpackDecoder.decode"),
    # Event loop, before it handles the outputs.
    ("MsgpackDecoder.decode", "OutputProcessor.process_outputs"),
    ("StatLoggerManager.record", "outputs.send"),
}
# Each of these spans is the work of a step for all of its requests.
STEPS = {"EngineCore.step", "EngineCore.process_input_queue", "EngineCore.post_step", "MsgpackEncoder.encode_into", "MsgpackDecoder.decode", "OutputProcessor.process_outputs", "StatLoggerManager.record", "outputs.send"}


@dataclass
class Timeline:
    """One request from its arrival to the end of its answer. Times are µs in the trace."""

    external_id: str
    began: float
    first: float  # when the first part of the answer had left
    ended: float
    parts: list  # (name, from, to)

    def uncovered(self, ended):
        """Returns (from, to, name of the part before, name of the part after) of each gap before `ended` that no part covers."""
        found, until, before = [], self.began, "arrival"
        for name, start, to in sorted(self.parts, key=lambda part: part[1]):
            if start > until:
                found.append((until, min(start, ended), before, name))
            if to > until:
                until, before = to, name
        found.append((until, ended, before, "end"))
        return [gap for gap in found if gap[1] > gap[0]]


def timelines(trace):
    """Yields the timeline of each answered request."""
    by_exchange, by_request = defaultdict(list), defaultdict(list)
    steps = []
    for event in trace.events:
        if event["ph"] != "X":
            continue
        args = event.get("args", {})
        if event["name"] in STEPS:
            steps.append(event)
        elif event["name"] not in CONTAINERS:
            by_exchange[args.get("exchange")].append(event)
            by_request[args.get("request_id")].append(event)
    for http in trace.by_name["http.request"]:
        args = http.get("args", {})
        if "answered_us" in args and args.get("external_ids"):
            own = by_exchange[args["exchange"]] + [event for one in args["request_ids"] for event in by_request[one]]
            yield timeline(http, own, steps, trace)


def timeline(http, own, steps, trace):
    """Builds the timeline of a request. Before the request reaches the engine, steps of other requests there explain nothing. In the event loop they do."""
    args = http["args"]
    began = http["ts"] - args.get("waited_us", 0.0)
    ended = began + args["answered_us"]
    engine_start = min(event["ts"] for event in own if event["name"] == "EngineCore.add_request")
    steps = [event for event in steps if event["pid"] == http["pid"] or event["ts"] + event["dur"] > engine_start]
    tasks = [http] + [trace.first(one, "AsyncLLM.add_request", "external_id") for one in args["external_ids"]]
    own = own + [event for task in tasks if task for event in trace.within(task)]
    parts = [(event["name"], event["ts"], event["ts"] + event["dur"]) for event in own + steps if event["name"] not in CONTAINERS]
    parts += [("waited_us", began, http["ts"]), *waits(own)]
    first = min(trace.first_chunks[one] for one in args["request_ids"])
    return Timeline(args["external_ids"][0], began, began + first, ended, [part for part in parts if part[2] > began and part[1] < ended])


def waits(events):
    """Yields the waits between a request's own spans as parts."""
    for name, before, after in WAITS:
        ends = [event["ts"] + event["dur"] for event in events if event["name"] in before]
        begins = [event["ts"] for event in events if event["name"] in after]
        if ends and begins and max(ends) < min(begins):
            yield name, max(ends), min(begins)


def run(machine, report):
    """Runs a server under a light load of streamed chat and text completions."""
    options = machine.options
    folder = machine.folder / "account"
    with Server(machine, folder, SA_PROFILE_LEVEL="verbose") as server:
        asyncio.run(load(server, 4, min(options.requests, 64), options.tokens, chat=True))
        asyncio.run(load(server, 4, min(options.requests, 64), options.tokens))
    found = list(timelines(merged(machine, report, "account", folder)))
    for label, until in (("ttft", lambda one: one.first), ("e2e", lambda one: one.ended)):
        measure(report, label, [(one, until(one)) for one in found])


def measure(report, label, found):
    """Prints how much time no part covers and the largest gaps, and checks each request against the tolerance."""
    gaps, over, latencies, missing = defaultdict(list), [], 0.0, 0.0
    for one, until in found:
        own = 0.0
        for start, to, before, after in one.uncovered(until):
            if (before, after) not in STEP_WAITS:
                gaps[before, after].append(to - start)
                own += to - start
        latencies, missing = latencies + until - one.began, missing + own
        if own > max(SHARE * (until - one.began), EACH_US):
            over.append(f"{one.external_id} {own:.0f} of {until - one.began:.0f}")
    report.result(f"account_{label}_uncovered_percent", round(100 * missing / max(latencies, 1), 3), f"of {latencies / 1e6:.2f} s in {len(found)} requests")
    for (before, after), lengths in sorted(gaps.items(), key=lambda gap: -sum(gap[1]))[:5]:
        mean = sum(lengths) / len(lengths)
        report.result(f"account_{label}_gap_us", round(mean, 1), f"mean of {len(lengths)}, {max(lengths):.0f} at most: from {before} to {after}")
    report.check(f"account_{label}_each_request", bool(found) and not over, f"{len(over)} of {len(found)} over the tolerance, in µs: {over[:4]}")
