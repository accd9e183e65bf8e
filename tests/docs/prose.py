"""Prose: how long the pages are, and how long their sentences. Code, tables and headings are no sentences; table cells count as words."""

import re

import pages

WORDS = {"README.md": 900, "docs/ARCHITECTURE.md": 3500}
LONG_WORDS = 30  # more is a long sentence, of which 5 in 100 are allowed
MOST_WORDS = 26  # that nine in ten sentences have at most
FEW_SENTENCES = 10  # in which one long sentence is no share
_table = []


def SUMMARY():
    return f"{len(_table)} pages, {sum(words for words, _ in _table):,} words, {sum(long for _, long in _table)} sentences over {LONG_WORDS} words"


def plain(text):
    """The text as it is read: links are their words, code is one word."""
    text = pages.COMMENT.sub("", pages.FENCE.sub("\n\n", text))
    return re.sub(r"!?\[((?:[^\]\[]|\[[^\]]*\])*)\](?:\([^)]*\)|\[[^\]]*\])?", r"\1", text)


def words(text):
    return len(re.findall(r"\S*\w\S*", plain(text)))


def sentences(text):
    """The sentences of the paragraphs and list items."""
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
    """What is too long in a page."""
    lengths = sorted((len(sentence.split()), sentence) for sentence in sentences(text))
    long = [sentence for length, sentence in lengths if length > LONG_WORDS]
    if name in WORDS and words(text) > WORDS[name]:
        yield f"{name}: expected {WORDS[name]} words at most, found {words(text)}"
    if len(long) > max(len(lengths) * 0.05, len(lengths) <= FEW_SENTENCES):
        yield f"{name}: expected at most 5 in 100 sentences over {LONG_WORDS} words, found {len(long)} of {len(lengths)}, such as: {long[-1][:120]}"
    ninth = lengths[int(len(lengths) * 0.9)] if len(lengths) > FEW_SENTENCES else (0, "")
    if ninth[0] > MOST_WORDS:
        yield f"{name}: expected nine in ten sentences to have {MOST_WORDS} words at most, found {ninth[0]}, such as: {ninth[1][:120]}"


def problems(show=False):
    for page in pages.every():
        name, text = pages.name(page), page.read_text()
        lengths = sorted(len(sentence.split()) for sentence in sentences(text)) or [0]
        _table.append((words(text), sum(length > LONG_WORDS for length in lengths)))
        if show:
            median, ninth = lengths[len(lengths) // 2], lengths[min(int(len(lengths) * 0.9), len(lengths) - 1)]
            print(f"{name:36} {words(text):6} words, {len(lengths):4} sentences of {median}/{ninth}/{lengths[-1]} words (median, 90 %, longest)")
        yield from problems_of(name, text)
