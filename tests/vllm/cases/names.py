"""The spans, instants and counters that docs/vllm-events.md lists, and their numbers in a trace."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs/vllm-events.md"
HEADER = "| process | span, instant or counter | contents |"
# These depend on the load or on compilation, not on the version.
BY_CHANCE = {"event_loop.stall", "gc.collect", "torch.compile", "triton.compile"}
ARGS = {
    ("APIServer", "http.request"): ["waited_us", "answered_us", "request_ids", "external_ids", "disconnected_us", "error"],
    ("APIServer", "request"): ["external_id", "n", "structured", "cached_tokens"],
    ("EngineCore", "request.finished"): ["cached_tokens", "preemptions"],
    ("EngineCore", "scheduler.schedule"): ["prefill_tokens", "decode_tokens", "preempted_ids"],
    ("EngineCore", "scheduler.update_from_output"): ["drafted", "accepted"],
    ("Worker", "WorkerWrapperBase.execute_model"): ["request_ids"],
}


def counted(trace):
    """Returns (kind of process, name or arg) → number of events that have it."""
    found = {}
    for kind, name in documented():
        events = [event for event in trace.by_name[name] if event["ph"] not in "Mstf" and is_kind(trace, event, kind)]
        found[kind, f"`{name}`"] = len(events)
        for arg in ARGS.get((kind, name), ()):
            found[kind, f"`{name}`: `{arg}`"] = sum(bool(event.get("args", {}).get(arg)) for event in events)
    return found


def is_kind(trace, event, kind):
    """Returns true if the event's process is of this kind. A worker may run inside its engine's process."""
    serves = "APIServer" in trace.processes.get(event["pid"], "")
    return kind not in ("APIServer", "EngineCore", "Worker") or serves == (kind == "APIServer")


def documented():
    """Returns (kind of process, name) of each span, instant and counter, in the order of the page."""
    lines = PAGE.read_text().splitlines()
    start = lines.index(HEADER) + 2
    found, kind = [], ""
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        process, listed, _ = (cell.strip() for cell in line.strip("|").split(" | ", 2))
        kind = process or kind
        found.extend((kind, name) for name in _full_names(re.findall(r"`([^`]+)`", listed)) if name not in BY_CHANCE)
    return found


def _full_names(listed):
    """Yields the full names. A name that begins with a dot continues like the previous one."""
    before = ""
    for name in listed:
        before = before.rpartition(".")[0] + name if name.startswith(".") else name
        yield before
