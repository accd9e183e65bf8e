"""The examples in the README and docs/python.md work."""

import json
import re

import pytest

from .conftest import SOURCES

PAGE = SOURCES.parents[1] / "docs" / "python.md"
USE_OF_THE_PAGE = """
import asyncio, types
run_step([types.SimpleNamespace(id="a")])
async def use():
    await generate("a")
    async for _ in stream("b"): pass
asyncio.run(use())
"""


def recorded(process, tmp_path, program):
    """Returns the args of what a program records, by name."""
    (tmp_path / "example.py").write_text(program)
    process.python("example.py", SA_PROFILE_DIR="out")
    process.run("trace-merge", "-q", "out")
    events = json.loads((tmp_path / "out" / "trace.json").read_text())["traceEvents"]
    return {event["name"]: event.get("args", {}) for event in events}


def test_the_example_records(process, tmp_path):
    (example,) = re.findall(r"```python\n(.*?)```", (SOURCES / "README.md").read_text(), re.DOTALL)
    names = recorded(process, tmp_path, example + "\nimport asyncio\nasyncio.run(generate('a'))\n")
    assert names["execute_step"] == {"tokens": 8}
    assert names["request"] == {"request_id": "cmpl-1", "prompt_tokens": 12, "reason": "stop"}
    assert names["sampled"] == {"finished": False}
    assert names["process_name"]["name"].startswith("engine-core")
    assert {"generate", "requests"} <= names.keys()


def test_the_lines_for_c_and_preloading_are_commands(process, tmp_path):
    found = re.findall(r"\$\((python -c .*)\)", (SOURCES / "README.md").read_text())
    assert len(found) == 2
    for command in found:
        stdout, _ = process.run("sh", "-c", command)
        assert "sa_profile" in stdout


def examples_of_the_page(test="test_readme.py"):
    """Returns the blocks of the page that this test runs."""
    return re.findall(rf"<!-- run by: [^\n]*/{re.escape(test)} -->\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.skipif(not PAGE.exists(), reason="SKIPPED the example for notebooks of docs/python.md: the page is not beside the package")
def test_the_example_for_notebooks_records(process, tmp_path):
    first, *others = examples_of_the_page()
    (example,) = [example for example in others if "recording(" in example]
    (tmp_path / "example.py").write_text(first + example)
    stdout = process.python("example.py")
    assert "trace.json" in stdout and "profile_out/trace.json" in stdout
    for trace in (tmp_path / "trace.json", tmp_path / "profile_out" / "trace.json"):
        names = {event["name"] for event in json.loads(trace.read_text())["traceEvents"]}
        assert {"step", "requests", "execute_step"} <= names


@pytest.mark.skipif(not PAGE.exists(), reason="SKIPPED the examples of docs/python.md: the page is not beside the package")
def test_the_examples_of_the_page_record(process, tmp_path):
    examples = [example for example in examples_of_the_page() if "recording(" not in example]
    names = recorded(process, tmp_path, "\n".join([*examples, USE_OF_THE_PAGE]))
    assert names["step"] == {"finished": 3} and names["requests"] == {"running": 1}
    assert names["execute_step"] == {"tokens": 128, "request_ids": ["a"]}
    assert {"generate", "stream", "stream.item"} <= names.keys()
