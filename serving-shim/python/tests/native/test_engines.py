"""The file that docs/engines.md shows, beside a stand-in for SGLang: the same processes, classes and methods, without a model."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = HERE.parents[3] / "docs" / "engines.md"


@pytest.mark.skipif(not PAGE.exists(), reason="SKIPPED the example of docs/engines.md: the page is not beside the package")
def test_the_file_of_the_page_records_every_process(program):
    (example,) = re.findall(r"```python\n(# serve\.py.*?)```", PAGE.read_text(), re.DOTALL)
    printed = program.run(example, ["--requests", "4"], PYTHONPATH=str(HERE / "fake"))
    assert printed == "".join(f"token of request-{number}\n" * 3 for number in range(4))
    trace = program.merge()
    assert trace.counts() == {
        "TokenizerManager.generate_request": 4,
        "Scheduler.process_input_requests": 12,
        "Scheduler.get_next_batch_to_run": 12,
        "Scheduler.run_batch": 12,
        "Scheduler.process_batch_result": 12,
        "DetokenizerManager.handle_batch_token_id_out": 12,
    }
    batches = [span["args"]["request_ids"] for span in trace.spans("Scheduler.run_batch")]
    assert sorted(batches) == sorted([f"request-{number}"] for number in range(4) for _ in range(3))
    named = {event["args"]["name"] for event in trace.events if event["name"] == "process_name"}
    assert {"sglang::scheduler", "sglang::detokenizer"} <= named
    assert len({span["pid"] for span in trace.spans()}) == 3
