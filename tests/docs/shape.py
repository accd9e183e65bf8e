"""Shape: a page of the manual says what for, shows the commands, what one sees, and the limits."""

import re

import pages

# Lists to look things up in, and a tutorial.
OF_THEIR_OWN = {"README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "FORMAT.md", "environment.md", "first-trace.md", "hardware-checks.md", "overhead.md", "performance.md", "troubleshooting.md"}
SECTIONS = ("What you see", "Limits")
MOST_WORDS = 60  # of the paragraph that says what for
_count = 0


def SUMMARY():
    return f"{_count} pages of the manual have it"


def problems_of(text):
    """What a page lacks."""
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    for section in SECTIONS:
        if section not in headings:
            yield f"expected a section {section}"
    purpose = re.match(r"# [^\n]+\n\n([^\n#`|<-][^\n]*)\n", text)
    if not purpose or len(purpose.group(1).split()) > MOST_WORDS:
        yield f"expected a paragraph of {MOST_WORDS} words at most that says what for, below the title"
    fence = text.find("\n```")
    if fence < 0 or len(text[:fence].split("\n")) > 30:
        yield f"expected commands at the begin, found {'none' if fence < 0 else 'them too far down'}"


def problems(_show=False):
    global _count
    listed = (pages.ROOT / "docs" / "README.md").read_text()
    for page in sorted((pages.ROOT / "docs").glob("*.md")):
        if page.name != "README.md" and f"({page.name}" not in listed:
            yield f"docs/README.md: expected a link to {page.name}"
        if page.name in OF_THEIR_OWN:
            continue
        _count += 1
        for problem in problems_of(page.read_text()):
            yield f"{pages.name(page)}: {problem}"
