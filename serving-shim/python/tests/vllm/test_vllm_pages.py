"""The statements that docs/slow-server.md and docs/vllm.md show return rows for a trace of the stand-ins."""

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import stand_ins as fake

ROOT = Path(__file__).parents[4]
CASES = ROOT / "tests" / "vllm" / "cases"
DOCS, TPQ, SQL_PYTHON = ROOT / "docs", ROOT / "tests" / "perfetto" / "tpq", ROOT / "tests" / "sql" / "python"
COMMANDS = Path(sys.executable).parent


@pytest.mark.skipif(not DOCS.exists(), reason="SKIPPED the statements of docs/slow-server.md and docs/vllm.md: the pages are not beside the package")
@pytest.mark.parametrize("page, run", [("slow-server.md", "in_sa_profile_sql"), ("vllm.md", "in_perfetto"), ("vllm.md", "in_sa_profile_sql")])
def test_the_statements_of_the_page_return_rows(record, page, run):
    folder = record(fake.run, "a-1", "b-2").folder
    subprocess.run([COMMANDS / "trace-merge", "-q", folder], check=True, timeout=60)
    statements = re.findall(r"```sql\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert statements
    for statement, rows in zip(statements, globals()[run](folder, page, statements), strict=True):
        assert {row[0] for row in rows} == {"a-1", "b-2"}, statement


def in_perfetto(folder, page, statements):
    done = subprocess.run([TPQ, folder / "trace.json", *statements], capture_output=True, text=True, timeout=120)
    if done.returncode == 3:
        pytest.skip(f"SKIPPED the statements of docs/{page}: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return [json.loads(answer) for answer in done.stdout.splitlines()]


def in_sa_profile_sql(folder, page, statements):
    found = subprocess.run([SQL_PYTHON, "duckdb"], capture_output=True, text=True, timeout=600)
    if found.returncode == 3:
        pytest.skip(f"SKIPPED the statements of docs/{page} in DuckDB: {found.stderr.strip()}")
    environment = dict(os.environ, VIRTUAL_ENV=str(Path(found.stdout.strip()).parents[1]))
    answers = []
    for statement in statements:
        words = [COMMANDS / "sa-profile", "sql", "--format", "json", folder, statement]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
        if "this build cannot write Parquet" in done.stderr:
            pytest.skip(f"SKIPPED the statements of docs/{page} in DuckDB: {done.stderr.strip()}")
        assert done.returncode == 0, done.stderr
        answers.append([list(row.values()) for row in json.loads(done.stdout)])
    return answers


@pytest.mark.skipif(
    not DOCS.exists() or not CASES.exists(), reason="SKIPPED the versions of docs/vllm-events.md: the page and its cases are not next to the package"
)
def test_the_table_of_versions_has_names_of_the_page():
    names = runpy.run_path(str(CASES / "names.py"))
    listed = {name for _, name in names["documented"]()}
    assert {"request.answered", "request.queued", "BaseRenderer.render_cmpl_async", "MsgpackEncoder.encode_into", "prefix_cache"} <= listed
    _, _, table = names["PAGE"].read_text().partition("## Versions")
    cells = re.findall(r"^\|([^|]*)\|", table, re.MULTILINE)
    exceptions = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    assert exceptions and exceptions <= listed
