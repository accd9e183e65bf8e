"""Runs the engine in docs/engines.md, and checks its report."""

import json
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[4] / "docs" / "engines.md"
REQUESTS = 24
TOKENS = sum(10 + number % 5 for number in range(REQUESTS))


@pytest.mark.skipif(not PAGE.exists(), reason="SKIPPED the example of docs/engines.md: the page is not beside the package")
def test_the_report_of_the_engine_on_the_page_has_all_figures(program):
    (example,) = re.findall(r"```python\n(# engine\.py.*?)```", PAGE.read_text(), re.DOTALL)
    program.run(example)
    stdout, _ = program.process.run("sa-profile", "report", "--json", str(program.directory))
    report = json.loads(stdout)
    counts = {name: report["requests"][name]["n"] for name in ("queue", "prefill", "decode", "ttft", "engine_ttft", "tpot", "e2e", "itl")}
    assert counts == {**dict.fromkeys(counts, REQUESTS), "itl": TOKENS - REQUESTS}
    assert report["requests"]["ok"] == REQUESTS
    assert [process["name"] for process in report["recorded"]["processes"]] == ["frontend", "engine"]
    trace = program.merge()
    assert trace.counts()["engine.execute_step"] == trace.counts()["frontend.process_outputs"]
    arrows = [event["ph"] for event in trace.events if event["name"] == "request" and event.get("cat") == "flow"]
    assert (arrows.count("s"), arrows.count("f")) == (REQUESTS, REQUESTS)
