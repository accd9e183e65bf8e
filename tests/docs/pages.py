"""The pages: which there are, and what stands in them outside of code."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(`{3,}|~{3,})([^\n`]*)\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def every():
    """Every page that git knows, or would add."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "*.md"], capture_output=True, text=True)
    names = listed.stdout.split("\n") if listed.returncode == 0 else [str(path.relative_to(ROOT)) for path in ROOT.glob("**/*.md") if "target" not in path.parts]
    return [ROOT / name for name in sorted(set(names)) if name and (ROOT / name).exists()]


def name(page):
    """A page's path in the repository."""
    return str(page.relative_to(ROOT))


def without_code(text):
    """The text without fenced blocks and comments; the lines keep their numbers."""
    blank = lambda found: "\n" * found.group().count("\n")
    return COMMENT.sub(blank, FENCE.sub(blank, text))


def line_of(text, at):
    """The number of the line that holds this position."""
    return text.count("\n", 0, at) + 1
