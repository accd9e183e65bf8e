"""Prose: limits for the length of the pages and their sentences. Code, tables and headings are not sentences. Words in tables count."""

import re

import pages

TOTAL_WORDS = 55_000  # of all pages
PAGE_WORDS = 1_200
DECISION_WORDS = 250
MOST_DECISIONS = 45
# Pages with another limit: the first impression, and reference pages.
WORDS = {
    "README.md": 700,
    "docs/ARCHITECTURE.md": 2_200,
    "docs/figures.md": 1_300,
    "docs/CHANGELOG.md": 500,
    "docs/FORMAT.md": 5_700,
    "docs/performance.md": 2_000,
    "docs/troubleshooting.md": 3_000,
}
LONG_WORDS = 30  # at most 5 in 100 sentences have more
MOST_WORDS = 26  # at most 10 in 100 sentences have more
FEW_SENTENCES = 10  # a page with no more than these may have one long sentence
_table = []


def SUMMARY():
    return f"{len(_table)} pages, {sum(words for words, _ in _table):,} words, {sum(long for _, long in _table)} sentences over {LONG_WORDS} words"


def plain(text):
    """Returns the text as it is read, without the targets of links, code blocks and comments."""
    text = pages.COMMENT.sub("", pages.FENCE.sub("\n\n", text))
    return re.sub(r"!?\[((?:[^\]\[]|\[[^\]]*\])*)\](?:\([^)]*\)|\[[^\]]*\])?", r"\1", text)


def words(text):
    return len(re.findall(r"\S*\w\S*", plain(text)))


def sentences(text):
    """Yields the sentences of paragraphs and list items."""
    text = re.sub(r"^\s*(?:#{1,6} .*|\|.*|[-*_=]{3,}\s*)$", "\n\n", plain(text), flags=re.MULTILINE)
    text = re.sub(r"^\s*(?:[-*+]|\d+\.)\s+", "\n\n", text, flags=re.MULTILINE)
    text = re.sub(r"`[^`\n]*`", "code", text)
    text = re.sub(r"\b(e\.g|i\.e|etc|vs|approx)\.", lambda found: found.group(1).replace(".", ""), text)
    for paragraph in re.split(r"\n\s*\n", text):
        paragraph = " ".join(paragraph.split())
        for sentence in re.split(r"(?<=[.!?])[\"')*]*\s+(?=[\"'(*A-Z0-9]|code\b)", paragraph):
            if re.search(r"\w", sentence):
                yield sentence


def problems_of(name, text):
    """Yields what is too long in a page."""
    lengths = sorted((len(sentence.split()), sentence) for sentence in sentences(text))
    long = [sentence for length, sentence in lengths if length > LONG_WORDS]
    most = WORDS.get(name, DECISION_WORDS if is_decision(name) else PAGE_WORDS)
    if words(text) > most:
        yield f"{name}: expected {most} words at most, found {words(text)}"
    if len(long) > max(len(lengths) * 0.05, len(lengths) <= FEW_SENTENCES):
        yield f"{name}: expected at most 5 in 100 sentences over {LONG_WORDS} words, found {len(long)} of {len(lengths)}, such as: {long[-1][:120]}"
    ninth = lengths[int(len(lengths) * 0.9)] if len(lengths) > FEW_SENTENCES else (0, "")
    if ninth[0] > MOST_WORDS:
        yield f"{name}: expected nine in ten sentences to have {MOST_WORDS} words at most, found {ninth[0]}, such as: {ninth[1][:120]}"


def is_decision(name):
    """Returns True if the page records a decision."""
    return bool(re.match(r"docs/decisions/\d", name))


def problems(show=False):
    decisions = sum(is_decision(pages.name(page)) for page in pages.every())
    if decisions > MOST_DECISIONS:
        yield f"docs/decisions: expected {MOST_DECISIONS} decisions at most, found {decisions}"
    for page in pages.every():
        name, text = pages.name(page), page.read_text()
        lengths = sorted(len(sentence.split()) for sentence in sentences(text)) or [0]
        _table.append((words(text), sum(length > LONG_WORDS for length in lengths)))
        if show:
            median, ninth = lengths[len(lengths) // 2], lengths[min(int(len(lengths) * 0.9), len(lengths) - 1)]
            print(f"{name:36} {words(text):6} words, {len(lengths):4} sentences of {median}/{ninth}/{lengths[-1]} words (median, 90 %, longest)")
        yield from problems_of(name, text)
    total = sum(words for words, _ in _table)
    if total > TOTAL_WORDS:
        yield f"all pages: expected {TOTAL_WORDS} words at most, found {total}"
