"""The table of docs/vllm.md that says what the trace of each version has, from what the case `names` has kept.

    python tests/vllm/cases/versions.py KEPT…

Each argument is the --keep folder of one version. The page's other versions stay; of a name that the page had not when they ran they say "not asked".
Rows in a line of one kind of process that are alike share one.
"""

import itertools
import json
import re
import sys
from pathlib import Path

from documented import PAGE, rows
from names import COLUMN

COUNTS = {"not tried": None, "yes": 1, "no": 0}
NOT_ASKED = "not asked"
HEAD = ("process", "span, instant, counter or arg")


def main(folders):
    """Prints the table as Markdown."""
    if not folders:
        print(__doc__, file=sys.stderr)
        return 2
    kept = [json.loads((Path(folder) / COLUMN).read_text()) for folder in folders]
    columns = list({column["version"]: column for column in [*on_page(PAGE.read_text()), *kept]}.values())
    table(columns)
    return 0


def table(columns):
    """Prints the columns, the oldest version first."""
    columns.sort(key=lambda column: number(column["version"]))
    line(*HEAD, *(column["version"] for column in columns))
    line(*["---"] * (2 + len(columns)))
    for (kind, cells), alike in itertools.groupby(rows_of(columns, list(rows())), key=lambda row: (row[0], row[2])):
        line(kind, ", ".join(name for _, name, _ in alike), *cells)


def on_page(page):
    """The columns that the page's table has already."""
    begin = f"| {' | '.join(HEAD)} |"
    found = list(itertools.dropwhile(lambda text: not text.startswith(begin), page.splitlines()))
    if len(found) < 2:
        sys.exit(f"versions: the page has no table that begins with {begin!r}")
    head, _, *lines = found
    columns = [dict(version=version, rows=[]) for version in cells_of(head)[2:]]
    for text in itertools.takewhile(lambda text: text.startswith("|"), lines):
        kind, names, *cells = cells_of(text)
        for column, one in zip(columns, cells, strict=True):
            column["rows"] += [[kind, name, COUNTS[one]] for name in names.split(", ") if one != NOT_ASKED]
    return columns


def cells_of(text):
    """What stands in a line of a table."""
    return text.strip("| ").split(" | ")


def number(version):
    """By which versions are sorted: of `0.11.0.post2` and `0.11.0rc1` that of `0.11.0`."""
    return [int(part) for part in re.findall(r"\d+", version)[:3]]


def rows_of(columns, documented):
    """(kind, name, cells) of each documented row."""
    counts = [{(kind, name): count for kind, name, count in column["rows"]} for column in columns]
    had = {row for one in counts for row in one}
    if had != set(documented):
        sys.exit(f"versions: these are in the page's list or in a column, but not in both: {sorted(had ^ set(documented))}")
    for row in documented:
        yield *row, tuple(cell(one[row]) if row in one else NOT_ASKED for one in counts)


def cell(count):
    """What is said of so many events."""
    return "not tried" if count is None else "yes" if count else "no"


def line(*cells):
    print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
