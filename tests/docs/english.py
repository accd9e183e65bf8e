"""English: comments and pages use few turns of phrase that technical English does not have, and a function's doc begins with a verb.

A hit is a place to look at, not always a fault. `allowed-phrases` lists the ones that are right as they are: a path and a part of the line.
README.md in this folder has the limits."""

import re

import pages

PER_1000 = 3  # phrases per 1,000 words, in each folder's comments and in each page
SMALL = 300  # words; a text that is shorter may have one phrase
DOCS_PERCENT = 2  # function docs that begin with one of CLAUSE
ALLOWED = pages.ROOT / "tests" / "docs" / "allowed-phrases"
CLAUSE = ("That", "Those", "What", "Whether", "How", "Where", "Who", "One", "Most")
PHRASES = re.compile(
    "|".join(
        (
            r"\b(?:of which|of whom|(?:that|those) of|those (?:that|who)|of those)\b",
            r"\b(?:is|are|was|were) none\b|\bno ones?\b|\bnone of (?:a|the|this)\b",
            r"\b(?:is|are|was|were|be|been) told\b|\btells?\b|\btold\b",
            r"(?:^|(?<=[.:;] ))(?:Who|Whose|What|Whether|Where|That|Those|How (?:many|much|long|far)) [a-z]+",
            r"\bha(?:s|ve|d) not\b(?! (?:been|yet|to))",
            r"\bbut for\b|\bso (?:many|much)\b|\bSee there\b",
            r"\b(?:stand|stands|stood|lie|lies|lay)\b|\b(?:behind|beside)\b",
        )
    )
)
SLASHES = {".rs", ".c", ".h", ".cc", ".cpp", ".hpp", ".js", ".ts"}
HASHES = {".py", ".pyi", ".sh", ".toml"}
COMMENT = {
    **dict.fromkeys(SLASHES, re.compile(r"\s*(?://[/!]?|/?\*+/?)\s?(.*)")),
    **dict.fromkeys(HASHES, re.compile(r"\s*(?:#(?!!)|r?\"\"\")\s?(.*)")),
    ".sql": re.compile(r"\s*--\s?(.*)"),
}
FUNCTION = re.compile(r"\s*(?:pub(?:\([^)]*\))? )?(?:default |const |async |unsafe |extern \"[^\"]*\" )*fn ")
_counts = {"words": 0, "phrases": 0, "docs": 0, "clauses": 0}


def SUMMARY():
    return (
        f"{_counts['phrases']} odd phrases in {_counts['words']:,} words of comments and pages, "
        f"{_counts['clauses']} of {_counts['docs']:,} function docs begin with a clause"
    )


def comments(suffix, text):
    """Yields number and text of each line of a source that is a comment or begins a docstring."""
    for number, line in enumerate(text.splitlines(), 1):
        if found := COMMENT[suffix].match(line):
            yield number, found.group(1)


def page_lines(text):
    """Yields number and text of each line of a page outside of code blocks."""
    yield from enumerate(pages.without_code(text).splitlines(), 1)


def phrases(line):
    """Returns the odd phrases in a line, in which inline code counts as one word."""
    return PHRASES.findall(re.sub(r"`[^`]*`", "code", line))


def function_docs(text):
    """Yields number and first word of the doc of each Rust function."""
    lines, number = text.splitlines(), 0
    while number < len(lines):
        first = number
        while number < len(lines) and lines[number].lstrip().startswith("///"):
            number += 1
        item = number
        while item < len(lines) and lines[item].lstrip().startswith("#["):
            item += 1
        if number > first and item < len(lines) and FUNCTION.match(lines[item]):
            yield first + 1, (lines[first].strip()[3:].split() or [""])[0].strip(",:")
        number = max(number, first + 1)


def folder_of(name):
    """Returns the folder whose comments count together: the first two parts of a path."""
    return "/".join(name.split("/")[:-1][:2]) or "."


def allowed():
    """Returns path → parts of lines that may have an odd phrase."""
    found = {}
    for line in ALLOWED.read_text().splitlines():
        if line and not line.startswith("#"):
            path, _, part = line.partition(": ")
            found.setdefault(path, []).append(part)
    return found


def problems(show=False):
    exceptions, used = allowed(), set()
    groups = {}  # folder or page → words, hits
    docs, clauses = 0, []
    for path in pages.sources():
        name, text = pages.name(path), path.read_text(errors="replace")
        if path.suffix == ".rs":
            for number, word in function_docs(text):
                docs += 1
                clauses += [f"{name}:{number}"] * (word in CLAUSE)
        is_page = path.suffix == ".md"
        if not is_page and path.suffix not in COMMENT:
            continue
        words, hits = groups.setdefault(name if is_page else folder_of(name), [[], []])
        for number, line in page_lines(text) if is_page else comments(path.suffix, text):
            words.append(len(line.split()))
            if not (found := phrases(line)):
                continue
            excepted = [part for part in exceptions.get(name, []) if part in line]
            used.update((name, part) for part in excepted)
            if not excepted:
                hits += [f"{name}:{number}: {phrase!r} in: {line.strip()[:120]}" for phrase in found]
    for group, (words, hits) in sorted(groups.items()):
        rate = 1000 * len(hits) / max(sum(words), 1)
        if show:
            print(f"{group:44} {sum(words):6} words, {len(hits):3} odd phrases, {rate:4.1f} per 1,000")
            for hit in hits:
                print(f"    {hit}")
        if rate > PER_1000 and len(hits) > (sum(words) < SMALL):
            yield f"{group}: expected {PER_1000} odd phrases per 1,000 words at most, found {rate:.1f}, such as {hits[0]}"
    for path, parts in exceptions.items():
        for part in parts:
            if (path, part) not in used:
                yield f"{pages.name(ALLOWED)}: no odd phrase in a line of {path} with `{part}`"
    if 100 * len(clauses) > DOCS_PERCENT * docs:
        yield f"expected {DOCS_PERCENT} % of {docs} function docs at most to begin with {', '.join(CLAUSE)}, found {len(clauses)}, such as {clauses[0]}"
    _counts.update(words=sum(sum(words) for words, _ in groups.values()), phrases=sum(len(hits) for _, hits in groups.values()), docs=docs, clauses=len(clauses))
