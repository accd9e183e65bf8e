"""The pages and sources of the repository, and the text of pages outside of code."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(`{3,}|~{3,})([^\n`]*)\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def files(pattern):
    """Returns the files with this pattern that git knows, or would add. Without git, all except those in `target`."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", pattern], capture_output=True, text=True)
    found = (ROOT / name for name in listed.stdout.split("\n") if name) if listed.returncode == 0 else ROOT.glob(f"**/{pattern}")
    return sorted({path for path in found if path.is_file() and "target" not in path.relative_to(ROOT).parts})


def every():
    """Returns every page."""
    return files("*.md")


def sources():
    """Returns every source and page."""
    return files("*.*")


def name(page):
    """Returns a file's path in the repository."""
    return str(page.relative_to(ROOT))


def without_code(text):
    """Returns the text without fenced blocks and comments. Lines keep their numbers."""
    blank = lambda found: "\n" * found.group().count("\n")
    return COMMENT.sub(blank, FENCE.sub(blank, text))


def line_of(text, at):
    """Returns the number of the line that contains this position."""
    return text.count("\n", 0, at) + 1
