"""docs/sglang-events.md lists what the plugin records with the stand-ins."""

import re
from pathlib import Path

import pytest
import sglang_server as fake

PAGE = Path(__file__).parents[4] / "docs" / "sglang-events.md"
RETRACTED = dict(prompt=7, tokens=8, max_total_tokens=30, speculative_algorithm="EAGLE", speculative_num_draft_tokens=4)
# Only HTTP servers, controllers and compilations record these, or they depend on the load.
OTHERS = re.compile(r"http\.|event_loop|outputs\.send|torch|triton|gc|DataParallelController|grammar_queue")


def documented():
    """Returns the names in the second column of the page's first table. A name that begins with a dot continues the one before it."""
    rows = re.findall(r"^\|[^|]*\|([^|]*)\|", PAGE.read_text().partition("## Versions")[0], re.MULTILINE)
    found, before = set(), ""
    for name in (name for row in rows for name in re.findall(r"`([^`]+)`", row)):
        before = before.rpartition(".")[0] + name if name.startswith(".") else name
        found.add(before)
    return found


@pytest.mark.skipif(not PAGE.exists(), reason="SKIPPED the events of docs/sglang-events.md: the page is not next to the package")
def test_the_page_lists_the_events(record):
    traces = record(fake.three_requests, SA_PROFILE_LEVEL="verbose"), record(fake.schedule, "a", "b", "c", **RETRACTED)
    recorded = {one["name"] for trace in traces for one in trace.events if one["ph"] != "M"}
    assert {name for name in recorded if not OTHERS.match(name)} == {name for name in documented() if not OTHERS.match(name)} - {"engine_settings"}
