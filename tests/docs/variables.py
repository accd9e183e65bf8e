"""Variables: docs/environment.md has a row for each environment variable that the sources read, and for no other."""

import re

import pages

PAGE = pages.ROOT / "docs" / "environment.md"
VARIABLE = re.compile(r"\bSA_PROFILE_[A-Z_]*[A-Z]\b")
# Folders of the programs that users run, and what is not part of these programs.
SOURCES = ("recorder/src", "serving-shim", "ascend-sys/src", "merge", "report/src", "tables/src", "cli/src")
NOT_SHIPPED = re.compile(r"/(?:tests|benches|bench|target|build)/|\.md$|\.sh$")
FOR_TESTS = {"SA_PROFILE_FULL", "SA_PROFILE_SIM_LIBRARY"}
_count = 0


def SUMMARY():
    return f"docs/environment.md names all {_count}"


def quoted(text):
    """Returns the variables in quotes, because a program reads a variable by its quoted name."""
    return set(re.findall(r"[\"'](SA_PROFILE_[A-Z_]*[A-Z])[\"']", text))


def in_sources():
    """Returns variable → one of the files that read it."""
    found = {}
    for directory in SOURCES:
        for path in sorted((pages.ROOT / directory).glob("**/*")):
            if path.suffix not in (".rs", ".py", ".c", ".h") or NOT_SHIPPED.search(str(path.relative_to(pages.ROOT))):
                continue
            for variable in quoted(path.read_text()):
                found.setdefault(variable, pages.name(path))
    return {variable: file for variable, file in found.items() if variable not in FOR_TESTS}


def problems_of(text, read):
    """Yields the missing rows and the superfluous rows of the page."""
    rows = set(VARIABLE.findall("\n".join(re.findall(r"^\|([^|]*)\|", text, re.MULTILINE))))
    for variable, file in sorted(read.items()):
        if variable not in rows:
            yield f"{pages.name(PAGE)}: expected a row for {variable}, which {file} reads"
    for variable in sorted(rows - set(read)):
        yield f"{pages.name(PAGE)}: no source reads {variable}"


def problems(_show=False):
    global _count
    read = in_sources()
    _count = len(read)
    yield from problems_of(PAGE.read_text() if PAGE.exists() else "", read)
