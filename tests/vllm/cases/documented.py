"""The spans, instants and counters that docs/vllm.md lists, by the kind of the process that has them, and args of them that come from facts of vLLM."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs/vllm.md"
HEADER = "| process | span, instant or counter | says |"
# These come with the load, or with what is compiled, and not with the version.
BY_CHANCE = {"event_loop.stall", "gc.collect", "torch.compile", "triton.compile"}
ARGS = {
    ("APIServer", "http.request"): ["waited_us", "answered_us", "request_ids", "external_ids", "disconnected_us", "error"],
    ("APIServer", "request"): ["external_id", "n", "structured", "cached_tokens"],
    ("EngineCore", "request.finished"): ["cached_tokens", "preemptions"],
    ("EngineCore", "scheduler.schedule"): ["prefill_tokens", "decode_tokens", "preempted_ids"],
    ("EngineCore", "scheduler.update_from_output"): ["drafted", "accepted"],
    ("Worker", "WorkerWrapperBase.execute_model"): ["request_ids"],
}


def names(page=PAGE):
    """(kind, name) of each, in the order of the page."""
    lines = page.read_text().splitlines()
    start = lines.index(HEADER) + 2
    found, kind = [], ""
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        process, listed, _ = (cell.strip() for cell in line.strip("|").split(" | ", 2))
        kind = process or kind
        found.extend((kind, name) for name in _whole(re.findall(r"`([^`]+)`", listed)) if name not in BY_CHANCE)
    return found


def rows(page=PAGE):
    """(kind, row) of each name and of each of its args, as the table of versions has them."""
    for kind, name in names(page):
        yield kind, f"`{name}`"
        for arg in ARGS.get((kind, name), ()):
            yield kind, f"`{name}`: `{arg}`"


def _whole(listed):
    """The names in full: one that begins with a dot goes on like the one before it."""
    before = ""
    for name in listed:
        before = before.rpartition(".")[0] + name if name.startswith(".") else name
        yield before
