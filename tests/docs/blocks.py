"""Blocks: a test runs each command and each piece of code on a page, or the page says what would be needed to run it.

A comment before each block says how it is run:

    <!-- run -->                   bash runs it; SQL goes to the newest trace, in Perfetto's trace processor and in `sa-profile sql`
    <!-- run: exit 0 or 1 -->      the same, and both exit codes are fine
    <!-- run: maybe no rows -->    SQL that may return no rows for this trace
    <!-- run: Perfetto -->         SQL that needs Perfetto's own tables, as the page says
    <!-- run: sa-profile sql -->   SQL that needs the tables of the report, as the page says
    <!-- file: NAME -->            the block is stored in this file
    <!-- run by: PATH -->          the test in this file reads the page, or contains the same lines
    <!-- not run: WHY -->          the block needs hardware, a network, a browser, …

One shell runs the blocks of all pages in reading order: README, the pages of the manual in the order of its index, then the others.
It starts at the top of a fresh copy of the sources, in which nothing is built or installed. `programs/cargo` replaces `cargo` and uses the programs
that are built already. Everything that a page exports, records or installs is still there on the next page, as for a reader.

After a block, the shell also runs each command that a program printed after `next`.

Blocks of `text`, `json` and `jsonl` are output or data, and need no comment. `<!-- setup: COMMAND -->` before a block runs
first, in a separate shell. If it exits with 3, its output names what is missing on this machine, and the rest of the page is skipped."""

import json
import math
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import pages

SCOPE = re.compile(r"^README\.md$|^docs/[^/]+\.md$|^serving-shim/[^/]+/README\.md$")
MARK = re.compile(r"<!--\s*(run by|not run|run|file)(?::\s*((?:(?!-->).)*?))?\s*-->\s*\Z", re.DOTALL)
SETUP = re.compile(r"<!--\s*setup:\s*((?:(?!-->).)*?)\s*-->", re.DOTALL)
OUTPUT = ("text", "json", "jsonl", "")
INDENTED = re.compile(r"(?:\A|\n)[ \t]*\n(?: {4}|\t)\S")
INDEX = re.compile(r"\]\(([^)#]+\.md)")
# `next: COMMAND    what it does`, as programs print it, or `next` in a separate column. The word may also start a line within a sentence.
NEXT = re.compile(r"^(?:sa-profile: .*)?next(?:: +| {2,})(\S.*?)(?: {4}.*)?$", re.MULTILINE)
LIMIT_S = 120
# Perfetto prints 17 digits, and the engines add doubles in different orders.
RELATIVE_ERROR = 1e-9
TPQ = pages.ROOT / "tests" / "perfetto" / "tpq"
SQL_PYTHON = pages.ROOT / "tests" / "sql" / "python"
STAND_INS = Path(__file__).parent / "programs"
NOT_HERE = 3
_done = Counter()
_skipped = []


def SUMMARY():
    for why in dict.fromkeys(_skipped):
        print(f"SKIPPED in tests/docs: {why}")
    return f"{_done['run']} blocks run, {_done['run by']} run by other tests, {_done['not run']} not run, with the reason on the page"


def blocks(text):
    """Yields line, language and text of each fenced block, the mark before it, and the set-ups since the previous block."""
    end = 0
    for found in pages.FENCE.finditer(text):
        setups = SETUP.findall(text[end : found.start()])
        end = found.end()
        mark = MARK.search(text[: found.start()])
        language = found.group(2).strip().split(",")[0].split(" ")[0]
        yield pages.line_of(text, found.start()), language, found.group(3), mark and (mark.group(1), (mark.group(2) or "").strip()), setups


def programs():
    """Returns the folder of the built programs."""
    target = Path(os.environ.get("CARGO_TARGET_DIR") or pages.ROOT / "target")
    return target / "debug"


def in_reading_order():
    """Returns the pages whose blocks are checked, in reading order."""
    index = pages.ROOT / "docs" / "README.md"
    listed = [(index.parent / name).resolve() for name in INDEX.findall(index.read_text())]
    ordered = dict.fromkeys([pages.ROOT / "README.md", index, *listed, *pages.every()])
    return [page for page in ordered if page.is_relative_to(pages.ROOT) and SCOPE.search(pages.name(page))]


class Stage:
    """A fresh copy of the sources with one shell in it."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="sa-docs-"))
        self.top = self.folder / "sa-profile"
        self.top.mkdir()
        self.processes = []
        self.began = time.time()
        self.shell = None
        home = self.folder / "home"
        home.mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SA_PROFILE_", "CARGO_"))}
        caches = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        self.environment = dict(
            kept, PATH=f"{STAND_INS}:{home}/.cargo/bin:{kept.get('PATH', '')}", HOME=str(home), LC_ALL="C.UTF-8", XDG_CACHE_HOME=caches,
            REPOSITORY=str(pages.ROOT), BUILT=str(programs()), DISPLAY=":0", BROWSER="browser")
        self.environment.pop("WAYLAND_DISPLAY", None)
        self.copy_sources()
        self.find_duckdb()

    def find_duckdb(self):
        found = subprocess.run([SQL_PYTHON, "duckdb"], capture_output=True, text=True, timeout=600)
        self.has_duckdb = found.returncode == 0
        if self.has_duckdb:
            self.environment["VIRTUAL_ENV"] = str(Path(found.stdout.strip()).parent.parent)

    def copy_sources(self):
        listed = subprocess.run(["git", "-C", pages.ROOT, "ls-files", "-coz", "--exclude-standard"], capture_output=True, text=True)
        if listed.returncode != 0:
            shutil.copytree(pages.ROOT, self.top, dirs_exist_ok=True, symlinks=True, ignore=shutil.ignore_patterns("target", ".git"))
            return
        for name in filter(None, listed.stdout.split("\0")):
            source, copy = pages.ROOT / name, self.top / name
            if source.is_symlink() or source.is_file():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, copy, follow_symlinks=False)

    def start(self, words, **pipes):
        process = subprocess.Popen(words, cwd=self.top, env=self.environment, start_new_session=True, text=True, **pipes)
        self.processes.append(process)
        return process

    def alone(self, lines):
        """Runs lines in a new shell. Their background processes continue until `close`."""
        command = ["bash", "-euo", "pipefail", "-c", lines]
        process = self.start(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            said, _ = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return subprocess.CompletedProcess(command, process.returncode, said)

    def run(self, lines):
        """Runs lines in the shell and returns the exit code of the last command that failed, or 0."""
        if self.shell is None or self.shell.poll() is not None:
            self.shell = self.start(["bash", "-o", "pipefail"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        number = len(list(self.folder.glob("block-*.sh")))
        block, said, ended = (self.folder / f"block-{number}.{kind}" for kind in ("sh", "out", "rc"))
        block.write_text(lines)
        self.shell.stdin.write(f"__failed=0; trap '__failed=$?' ERR; . {block} > {said} 2>&1 < /dev/null; trap - ERR; echo $__failed > {ended}.new; mv {ended}.new {ended}\n")
        self.shell.stdin.flush()
        end = time.monotonic() + LIMIT_S
        while not ended.exists() and self.shell.poll() is None:
            if time.monotonic() > end:
                os.killpg(self.shell.pid, signal.SIGKILL)
                self.shell.wait()  # otherwise the next block would go to a shell that is about to end
                raise subprocess.TimeoutExpired("bash", LIMIT_S)
            time.sleep(0.01)
        code = int(ended.read_text()) if ended.exists() else 1
        return subprocess.CompletedProcess("bash", code, said.read_text(errors="replace") if said.exists() else "")

    def newest_trace(self):
        traces = [path for path in self.top.glob("**/trace.json") if path.stat().st_mtime >= self.began]
        return max(traces, key=lambda path: path.stat().st_mtime, default=self.top / "trace.json")

    def perfetto(self, statement):
        return subprocess.run([str(TPQ), str(self.newest_trace()), statement], text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def duckdb(self, statement):
        words = [str(programs() / "sa-profile"), "sql", "--format", "json", str(self.newest_trace()), statement]
        return subprocess.run(words, env=self.environment, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def close(self):
        for process in self.processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            for pipe in filter(None, (process.stdin, process.stdout)):
                pipe.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def are_equal(one, other):
    """Returns True if two rows have the same values. Doubles may differ in their last digits."""
    are_numbers = lambda *values: all(isinstance(value, (int, float)) for value in values)
    return len(one) == len(other) and all(
        math.isclose(a, b, rel_tol=RELATIVE_ERROR, abs_tol=RELATIVE_ERROR) if are_numbers(a, b) else a == b for a, b in zip(one, other))


def problem_of_sql(stage, statement, how):
    """Runs a statement in both engines and returns the problem, or None."""
    rows = {}
    shown = stage.perfetto(statement) if how != "sa-profile sql" else None
    if shown is None:
        pass
    elif shown.returncode == NOT_HERE:
        _skipped.append("SQL of the pages in Perfetto: tests/perfetto/tpq cannot be set up here")
    elif shown.returncode != 0:
        return f"Perfetto: {shown.stdout.strip()[-600:]}"
    else:
        rows["Perfetto"] = json.loads(shown.stdout)
    if how != "Perfetto" and not stage.has_duckdb:
        _skipped.append("SQL of the pages in sa-profile sql: tests/sql/python cannot set up DuckDB here")
    elif how != "Perfetto":
        asked = stage.duckdb(statement)
        if asked.returncode != 0:
            return f"sa-profile sql: {asked.stdout.strip()[-600:]}"
        rows["sa-profile sql"] = [list(row.values()) for row in json.loads(asked.stdout)]
    for engine, found in rows.items():
        if not found and how != "maybe no rows":
            return f"{engine}: expected rows, found no row"
    if len(rows) == 2:
        key = lambda row: [str(value) for value in row if not isinstance(value, float)]
        one, other = (sorted(found, key=key) for found in rows.values())
        if len(one) != len(other) or not all(map(are_equal, one, other)):
            return f"the engines differ: {one[:3]} and {other[:3]}"
    return None


def problem_of_run(stage, language, lines, how):
    """Runs a block and the commands that it prints after `next`. Returns the problem, or None."""
    codes = (0, 1) if how == "exit 0 or 1" else (0,)
    try:
        if language == "sql":
            return problem_of_sql(stage, lines, how)
        done = stage.run(lines)
        said = done.stdout
        for command in NEXT.findall(said) if done.returncode in codes else ():
            done = stage.run(command)
            if done.returncode != 0:
                return f"`next: {command}`: exit {done.returncode}: {done.stdout.strip()[-600:]}"
    except subprocess.TimeoutExpired:
        return f"it ran for more than {LIMIT_S} s"
    return None if done.returncode in (*codes, 0) else f"exit {done.returncode}: {done.stdout.strip()[-600:]}"


def problem_of_test(page, lines, path):
    """Returns why the file that a mark names cannot be the block's test, or None."""
    test = pages.ROOT / path
    if not test.is_file():
        return f"there is no {path}"
    text = test.read_text()
    if page.name in text or any(len(line) > 20 and line.strip() in text for line in lines.split("\n")):
        return None
    return f"{path} neither names {page.name} nor contains a line of the block"


def problem_of_setup(stage, page, line, setups):
    """Runs the set-ups before a block. Returns the problem and the missing program, each of which may be None."""
    for setup in setups:
        try:
            done = stage.alone(setup)
        except subprocess.TimeoutExpired:
            return f"setup: it ran for more than {LIMIT_S} s", None
        if done.returncode == NOT_HERE:
            return None, f"{pages.name(page)} from line {line} on: {done.stdout.strip()}"
        if done.returncode:
            return f"setup: exit {done.returncode}: {done.stdout.strip()[-600:]}", None
    return None, None


def problem_of_block(stage, page, line, language, lines, mark, setups):
    """Runs a block or checks its mark. Returns the problem and the missing program, each of which may be None."""
    kind, what = mark or (None, "")
    if kind is None:
        return f"a block of {language} without a mark: <!-- run -->, <!-- file: NAME -->, <!-- run by: PATH --> or <!-- not run: WHY -->", None
    if kind == "run by":
        return problem_of_test(page, lines, what), None
    if kind == "not run":
        return "not run: expected a reason" if len(what) < 5 else None, None
    problem, missing = problem_of_setup(stage, page, line, setups)
    if problem or missing:
        return problem, missing
    if kind == "file":
        (stage.top / what).write_text(lines)
        return None, None
    return problem_of_run(stage, language, lines, what), None


def problems_of(page, text, stage, show=False):
    """Yields line and problem of each faulty block of a page."""
    for found in INDENTED.finditer(pages.without_code(text)):
        before = pages.without_code(text)[: found.start()].rstrip().rsplit("\n", 1)[-1]
        if not re.match(r"\s*(?:[-*+]|\d+\.)\s", before) and not before.startswith(" "):
            yield pages.line_of(pages.without_code(text), found.end()), "a block without a fence: fence it and name its language"
    missing = None
    for line, language, lines, mark, setups in blocks(text):
        kind, what = mark or (None, "")
        if language in OUTPUT and not mark or missing and kind in ("run", "file"):
            continue
        began = time.monotonic()
        problem, missing_here = problem_of_block(stage, page, line, language, lines, mark, setups)
        if missing_here:
            missing = missing_here
            _skipped.append(missing)
            continue
        _done[kind] += 1
        if show:
            print(f"{pages.name(page)}:{line}: {kind}{': ' if what else ''}{what} {time.monotonic() - began:.1f} s{f' FAILED {problem}' if problem else ''}", flush=True)
        if problem:
            yield line, problem


def problems(show=False):
    if not (programs() / "trace-merge").exists():
        yield f"{programs()} has no trace-merge: cargo build --workspace"
        return
    stage = Stage()
    try:
        for page in in_reading_order():
            for line, problem in problems_of(page, page.read_text(), stage, show):
                yield f"{pages.name(page)}:{line}: {problem}"
    finally:
        stage.close()
