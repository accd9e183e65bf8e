"""Messages: docs/troubleshooting.md explains each message that the recorder and its programs print on stderr.

A message is a string of at least three words in the code of the crates below, whichever function prints it. `{…}` in a source and `…` on the page match anything."""

import ast
import re

import pages

PAGE = pages.ROOT / "docs" / "troubleshooting.md"
# Sources of the libraries that run inside a server, of `sa-profile` and of the merge.
SOURCES = ("recorder/src", "recorder/format/src", "serving-shim/core/src", "serving-shim/preload/src", "serving-shim/capi/src", "serving-shim/python/sa_profile",
           "serving-shim/python/src/call/misuse.rs",
           "ascend-sys/src/library.rs", "cli/src/run", "cli/src/run.rs", "cli/src/obey.rs", "cli/src/open.rs", "cli/src/open", "cli/src/sql.rs",
           "report/tables/src/command.rs", "report/tables/src/folder.rs", "report/tables/src/host_tables.rs", "report/tables/src/write_tables.rs", "merge")
# Files whose strings are not messages: rules that `--check` explains itself, file formats, types, responses to a browser.
NOT_MESSAGES = re.compile(r"/check/|/check\.rs$|/src/device/|/format/src/(?!visibility\.rs$|record\.rs$)|/types/|/table\.rs$|/wrapper\.rs$|/request\.rs$|/site\.rs$|/sys/map\.rs$|/dlsym\.rs$|/arguments\.rs$|/tests?\.rs$|/tests/|/benches/|/sample\.rs$|/emulator\.rs$|/_hooks/sources\.py$|/__main__\.py$")
# Code before a string that is not a message.
NOT_SAID = re.compile(r"(?:reason\s*=|skip_serializing_if\s*=|const RARE: &str\s*=|must_use\s*=|doc\s*=|help\s*=|heading\s*=|help_heading\s*=|about\s*=|expect\(|unreachable!\(|panic!\(|debug_assert\w*!\([^;]*|assert\w*!\([^;]*)\s*$")
CODE = re.compile(r"//[^\n]*|/\*.*?\*/|b?r#*\"|b?\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\\n]|\\[^'\n]*|\\')'", re.DOTALL)
WORD = re.compile(r"(?<![\w\"$.-])[A-Za-z][a-z']+(?=[ ,.:;)\n]|$)")
LEAST_WORDS = 3
_count = 0


def SUMMARY():
    return f"docs/troubleshooting.md explains all {_count}"


def literals(source):
    """Yields position and text of each string in Rust code."""
    at = 0
    while found := CODE.search(source, at):
        token, at = found.group(), found.end()
        if token.lstrip("b").startswith("r"):
            end = '"' + "#" * token.count("#")
            close = source.index(end, at)
            yield found.start(), source[at:close]
            at = close + len(end)
        elif token.startswith('"'):
            yield found.start(), token[1:-1]


def in_rust(source):
    """Yields the messages in Rust code."""
    source = source.split("#[cfg(test)]")[0]
    for at, text in literals(source):
        if NOT_SAID.search(source[max(0, at - 80) : at]) or text.startswith("Examples:") or "\nExamples:" in text or "Exit status:" in text:
            continue
        text = re.sub(r"\\\n\s*", "", text)
        text = re.sub(r"\{\{|\}\}", "\0", text)
        yield re.sub(r"\{[^{}]*\}", "…", text).replace('\\"', '"').replace("\\\\", "\\")


def in_python(source):
    """Yields the texts that Python code passes to `warn_once` and `print(…, file=sys.stderr)`."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or getattr(node.func, "id", "") not in ("warn_once", "print"):
            continue
        if node.func.id == "print" and not any(keyword.arg == "file" for keyword in node.keywords):
            continue
        for argument in node.args:
            if isinstance(argument, ast.BinOp) and isinstance(argument.left, ast.Constant) and isinstance(argument.left.value, str):
                yield re.sub(r"%[a-z]", "…", argument.left.value)
            elif isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value
            elif isinstance(argument, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in argument.values)


def lines(text):
    """Yields the lines of a string that are messages."""
    for line in re.split(r"\\n|\n", text):
        line = line.strip()
        if "\0" not in line and not line.startswith("https://") and len(WORD.findall(line.replace("…", " … "))) >= LEAST_WORDS:
            yield line


def is_source(path):
    """Returns True if this file may contain messages. Only its path within the repository counts."""
    return path.suffix in (".rs", ".py") and not NOT_MESSAGES.search(pages.name(path))


def in_sources():
    """Returns message → file that contains it."""
    found = {}
    for name in SOURCES:
        root = pages.ROOT / name
        paths = [root] if root.is_file() else sorted(root.glob("**/*"))
        for path in paths:
            if not is_source(path):
                continue
            read = in_rust if path.suffix == ".rs" else in_python
            for text in read(path.read_text()):
                for line in lines(text):
                    found.setdefault(line, pages.name(path))
    return found


def pattern(text):
    """Returns a pattern for a text in which `…` matches anything."""
    return re.compile(r".*".join(re.escape(part.strip()) if not part.strip() else re.escape(part) for part in text.split("…")), re.DOTALL)


def explained(page):
    """Returns text and pattern of each message on the page, which is code in the first column of a table."""
    cells = re.findall(r"^\|((?:[^|\\]|\\.)*)\|", page, re.MULTILINE)
    return [(text, pattern(text)) for cell in cells for text in re.findall(r"`([^`]+)`", cell.replace("\\|", "|"))]


def problems_of(page, said):
    """Yields the messages that the page lacks, and the texts on the page that are in no source."""
    known = explained(page)
    used = set()
    for message, file in sorted(said.items(), key=lambda item: (item[1], item[0])):
        hits = [text for text, shape in known if shape.fullmatch(message) or pattern(message).fullmatch(text)]
        used.update(hits)
        if not hits:
            yield f"{pages.name(PAGE)}: expected a row for `{message}` in {file}"
    for text, _ in known:
        if text not in used and len(WORD.findall(text.replace("…", " … "))) >= LEAST_WORDS:
            yield f"{pages.name(PAGE)}: `{text}` is in no source"


def problems(show=False):
    global _count
    said = in_sources()
    _count = len(said)
    if show:
        for message, file in sorted(said.items(), key=lambda item: item[1]):
            print(f"{file}: {message}")
    yield from problems_of(PAGE.read_text() if PAGE.exists() else "", said)
