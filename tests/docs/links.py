"""Links: each link leads to a file of the repository, and to a heading in it if the link names one."""

import re
import urllib.parse

import pages

LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^\[[^\]]+\]:\s+(\S+)", re.MULTILINE)
HEADING = re.compile(r"^#{1,6}[ \t]+(.*?)[ \t]*#*$", re.MULTILINE)
ANCHOR = re.compile(r"<a\s+(?:id|name)=\"([^\"]+)\"")
_count = 0


def SUMMARY():
    return f"{_count} links, no dead ones"


def anchors(text):
    """Returns the anchors of a page, which GitHub derives from its headings."""
    seen, found = {}, set(ANCHOR.findall(text))
    for heading in HEADING.findall(pages.without_code(text)):
        words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        words = re.sub(r"[`*]", "", words).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        number = seen[slug] = seen.get(slug, -1) + 1
        found.add(f"{slug}-{number}" if number else slug)
    return found


def targets(text):
    """Yields line and target of each link of a page."""
    outside = pages.without_code(text)
    outside = re.sub(r"`[^`\n]*`", lambda found: " " * len(found.group()), outside)
    for pattern in (LINK, REFERENCE):
        for found in pattern.finditer(outside):
            yield pages.line_of(outside, found.start()), found.group(1)


def problem_of(page, target):
    """Returns the problem with a link, or None."""
    if re.match(r"[a-z]+:", target):
        return None
    path, _, anchor = urllib.parse.unquote(target).partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.exists():
        return f"there is no {path}"
    if anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
        return f"{path or pages.name(page)} has no heading #{anchor}"
    return None


def problems(_show=False):
    global _count
    for page in pages.every():
        for line, target in targets(page.read_text()):
            _count += 1
            if problem := problem_of(page, target):
                yield f"{pages.name(page)}:{line}: {problem}"
