"""Blocks: a test runs each command and each piece of code that a page shows, or the page says what it needs that is not here.

A comment stands before each block:

    <!-- run -->                   bash runs it here, in a folder of the page, after the page's blocks before it; SQL goes to the trace there
    <!-- run: exit 0 or 1 -->      the same, and the exit code may be either
    <!-- file: NAME -->            it becomes this file of the folder
    <!-- run by: PATH -->          the test in this file reads the page, or has the same lines
    <!-- not run: WHY -->          it needs hardware, a network, a browser, …

Blocks of `text` are output, and need none. `<!-- setup: COMMAND -->` before a block runs first, in the same folder; where it exits with 3, it says
what is missing here, and what follows on the page is skipped."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import pages

SCOPE = re.compile(r"^(README|CONTRIBUTING)\.md$|^docs/[^/]+\.md$|^serving-shim/[^/]+/README\.md$")
MARK = re.compile(r"<!--\s*(run by|not run|run|file)(?::\s*((?:(?!-->).)*?))?\s*-->\s*\Z", re.DOTALL)
SETUP = re.compile(r"<!--\s*setup:\s*((?:(?!-->).)*?)\s*-->", re.DOTALL)
OUTPUT = ("text", "json", "")
INDENTED = re.compile(r"(?:\A|\n)[ \t]*\n(?: {4}|\t)\S")
LIMIT_S = 120
TPQ = pages.ROOT / "tests" / "perfetto" / "tpq"
# Stands for the reader's server: a small tree of processes that record.
SERVER = """#!/bin/sh
[ $# != 0 ] || set -- --requests 6 --concurrency 3 --tokens 6
exec serving-demo --no-merge "$@" > /dev/null 2>&1
"""
_done = Counter()
_skipped = []


def SUMMARY():
    for why in _skipped:
        print(f"SKIPPED in tests/docs: {why}")
    return f"{_done['run']} blocks run, {_done['run by']} run by other tests, {_done['not run']} not run: they say what they need"


def blocks(text):
    """Each fenced block: its line, language, lines, the mark before it, and the set-ups since the block before."""
    end = 0
    for found in pages.FENCE.finditer(text):
        setups = SETUP.findall(text[end : found.start()])
        end = found.end()
        mark = MARK.search(text[: found.start()])
        language = found.group(2).strip().split(",")[0].split(" ")[0]
        yield pages.line_of(text, found.start()), language, found.group(3), mark and (mark.group(1), (mark.group(2) or "").strip()), setups


def programs():
    """The folder of the built programs."""
    target = Path(os.environ.get("CARGO_TARGET_DIR") or pages.ROOT / "target")
    return target / "debug"


class Stage:
    """A folder for the blocks of a page."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="sa-docs-"))
        self.groups = []
        tools = self.folder / ".bin"
        tools.mkdir()
        server = tools / "your-server"
        server.write_text(SERVER)
        server.chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SA_PROFILE_")}
        path = f"{tools}:{programs()}:{kept.get('PATH', '')}"
        self.environment = dict(kept, PATH=path, HOME=str(self.folder), LC_ALL="C.UTF-8", REPOSITORY=str(pages.ROOT))

    def bash(self, lines):
        """Runs lines; what they leave in the background goes on until `close`."""
        command = ["bash", "-euo", "pipefail", "-c", lines]
        pipes = dict(text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        with subprocess.Popen(command, cwd=self.folder, env=self.environment, start_new_session=True, **pipes) as process:
            self.groups.append(process.pid)
            try:
                said, _ = process.communicate(timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        return subprocess.CompletedProcess(command, process.returncode, said)

    def sql(self, statement):
        traces = sorted(self.folder.glob("**/trace.json"), key=lambda path: path.stat().st_mtime)
        trace = str(traces[-1]) if traces else "trace.json"
        return subprocess.run([str(TPQ), trace, statement], env=dict(os.environ), text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def close(self):
        for group in self.groups:
            try:
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(self.folder, ignore_errors=True)


def problem_of_run(stage, language, lines, codes):
    """What went wrong when a block was run, if anything did."""
    try:
        done = stage.sql(lines) if language == "sql" else stage.bash(lines)
    except subprocess.TimeoutExpired:
        return f"it ran for more than {LIMIT_S} s"
    if language == "sql" and done.returncode == 3:
        _skipped.append("SQL of the pages: tests/perfetto/tpq cannot be set up here")
        return None
    if language == "sql" and done.stdout.strip() == "[]":
        return "the statement has no row"
    return None if done.returncode in codes else f"exit {done.returncode}: {done.stdout.strip()[-600:]}"


def problem_of_test(page, lines, path):
    """Why the file that a mark names cannot be the block's test."""
    test = pages.ROOT / path
    if not test.is_file():
        return f"there is no {path}"
    text = test.read_text()
    if page.name in text or any(len(line) > 20 and line.strip() in text for line in lines.split("\n")):
        return None
    return f"{path} neither names {page.name} nor has a line of it"


def problems_of(page, text, show=False):
    """What is wrong with the blocks of a page."""
    for found in INDENTED.finditer(pages.without_code(text)):
        before = pages.without_code(text)[: found.start()].rstrip().rsplit("\n", 1)[-1]
        if not re.match(r"\s*(?:[-*+]|\d+\.)\s", before) and not before.startswith(" "):
            yield pages.line_of(pages.without_code(text), found.end()), "a block without a fence: say which language it is"
    stage, missing = None, None
    try:
        for line, language, lines, mark, setups in blocks(text):
            if language in OUTPUT and not mark:
                continue
            kind, what = mark or (None, "")
            problem = None
            if kind in ("run", "file"):
                stage = stage or Stage()
                for setup in setups:
                    try:
                        done = stage.bash(setup)
                    except subprocess.TimeoutExpired:
                        problem = f"setup: it ran for more than {LIMIT_S} s"
                        break
                    if done.returncode == 3 and not missing:
                        missing = f"what {pages.name(page)} shows from line {line} on: {done.stdout.strip()}"
                        _skipped.append(missing)
                    elif done.returncode:
                        problem = f"setup: exit {done.returncode}: {done.stdout.strip()[-600:]}"
            if missing and kind in ("run", "file"):
                continue
            _done[kind] += 1
            if problem:
                pass
            elif kind is None:
                problem = f"a block of {language} without a mark: <!-- run -->, <!-- file: NAME -->, <!-- run by: PATH --> or <!-- not run: WHY -->"
            elif kind == "file":
                (stage.folder / what).write_text(lines)
            elif kind == "run":
                problem = problem_of_run(stage, language, lines, (0, 1) if what == "exit 0 or 1" else (0,))
            elif kind == "run by":
                problem = problem_of_test(page, lines, what)
            elif len(what) < 5:
                problem = "not run: says not why"
            if show:
                print(f"{pages.name(page)}:{line}: {kind}{': ' if what else ''}{what}{f' FAILED {problem}' if problem else ''}")
            if problem:
                yield line, problem
    finally:
        if stage:
            stage.close()


def problems(show=False):
    if not (programs() / "trace-merge").exists():
        yield f"{programs()} has no trace-merge: cargo build --workspace"
        return
    for page in pages.every():
        if SCOPE.search(pages.name(page)):
            for line, problem in problems_of(page, page.read_text(), show):
                yield f"{pages.name(page)}:{line}: {problem}"
