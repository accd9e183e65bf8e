"""The statements that docs/slow-server.md and docs/vllm.md show have answers, in a trace of the stand-ins."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "vllm_serving"
ROOT = Path(__file__).parents[4]
DOCS, TPQ = ROOT / "docs", ROOT / "tests" / "perfetto" / "tpq"


def two_requests():
    from test_vllm_engine import two_requests as run

    run()


@pytest.mark.skipif(not DOCS.exists(), reason="SKIPPED the statements of docs/slow-server.md and docs/vllm.md: the pages are not beside the package")
@pytest.mark.parametrize("page", ["slow-server.md", "vllm.md"])
def test_the_statements_of_the_page_have_answers(record, page):
    folder = record(two_requests).folder
    subprocess.run([Path(sys.executable).parent / "trace-merge", "-q", folder], check=True, timeout=60)
    statements = re.findall(r"```sql\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert statements
    done = subprocess.run([TPQ, folder / "trace.json", *statements], capture_output=True, text=True, timeout=120)
    if done.returncode == 3:
        pytest.skip(f"SKIPPED the statements of docs/{page}: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    for statement, answer in zip(statements, done.stdout.splitlines(), strict=True):
        assert {row[0] for row in json.loads(answer)} == {"a-1", "b-2"}, statement


@pytest.mark.skipif(not DOCS.exists() or not BENCH.exists(), reason="SKIPPED the versions of docs/vllm.md: the page and its benchmark are not beside the package")
def test_the_table_of_versions_has_each_name_of_the_page(monkeypatch):
    monkeypatch.syspath_prepend(BENCH)
    import documented

    listed = {name for _, name in documented.names()}
    assert {"request.arrived", "request.queued", "BaseRenderer.render_cmpl_async", "MsgpackEncoder.encode_into", "prefix_cache"} <= listed
    _, _, versions = documented.PAGE.read_text().partition("## Versions")
    assert not [name for name in listed if f"`{name}`" not in versions]
