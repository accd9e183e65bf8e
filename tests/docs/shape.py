"""Shape: a page of the manual says what it is for, shows the commands and their output, and names the limits."""

import re

import pages

# Reference pages and a tutorial, which have another shape.
OF_THEIR_OWN = {"README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "FORMAT.md", "environment.md", "figures.md", "first-trace.md", "hardware-checks.md", "overhead.md", "performance.md", "sglang-events.md", "troubleshooting.md", "vllm-events.md"}
SECTIONS = ("What you see", "Limits")
MOST_WORDS = 60  # of the first paragraph
_count = 0


def SUMMARY():
    return f"{_count} pages of the manual have the right shape"


def problems_of(text):
    """Yields what a page lacks."""
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    for section in SECTIONS:
        if section not in headings:
            yield f"expected a section {section}"
    purpose = re.match(r"# [^\n]+\n\n([^\n#`|<-][^\n]*)\n", text)
    if not purpose or len(purpose.group(1).split()) > MOST_WORDS:
        yield f"expected a paragraph of {MOST_WORDS} words at most below the title that says what the page is for"
    fence = text.find("\n```")
    if fence < 0 or len(text[:fence].split("\n")) > 30:
        yield f"expected commands in the first 30 lines, found {'no commands' if fence < 0 else 'them further down'}"


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
