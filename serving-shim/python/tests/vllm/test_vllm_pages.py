"""The statements that docs/slow-server.md and docs/vllm.md show have answers, in a trace of the stand-ins."""

import importlib
import json
import os
import re
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
def test_the_statements_of_the_page_have_answers(record, page, run):
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


with_cases = pytest.mark.skipif(
    not DOCS.exists() or not CASES.exists(), reason="SKIPPED the versions of docs/vllm.md: the page and its cases are not next to the package"
)


@pytest.fixture
def versions(monkeypatch):
    """The module that makes the table."""
    monkeypatch.syspath_prepend(CASES)
    before = set(sys.modules)
    yield importlib.import_module("versions")
    for name in set(sys.modules) - before:
        del sys.modules[name]  # `trace` and others have names of the standard library


@with_cases
def test_the_table_is_what_is_made_of_it(versions, capsys):
    page = versions.PAGE.read_text()
    versions.table(versions.on_page(page))
    assert capsys.readouterr().out in page
