"""The table of docs/vllm.md that says what the trace of each version has, from what the case `names` has kept.

    python serving-shim/python/bench/vllm_serving/versions.py KEPT…

Each argument is the --keep folder of one version. The page's other versions stay. Rows in a line of one kind of process that are alike share one.
"""

import itertools
import json
import sys
from pathlib import Path

from documented import PAGE
from names import COLUMN

COUNTS = {"not tried": None, "yes": 1, "no": 0}
HEAD = ("process", "span, instant, counter or arg")


def main(folders):
    """Prints the table as Markdown."""
    if not folders:
        print(__doc__, file=sys.stderr)
        return 2
    kept = [json.loads((Path(folder) / COLUMN).read_text()) for folder in folders]
    columns = list({column["version"]: column for column in [*on_page(PAGE.read_text()), *kept]}.values())
    columns.sort(key=lambda column: number(column["version"]))
    line(*HEAD, *(column["version"] for column in columns))
    line(*["---"] * (2 + len(columns)))
    for (kind, cells), rows in itertools.groupby(rows_of(columns), key=lambda row: (row[0], row[2])):
        line(kind, ", ".join(name for _, name, _ in rows), *cells)
    return 0


def on_page(page):
    """The columns that the page's table has already."""
    head, _, *lines = itertools.dropwhile(lambda text: not text.startswith(f"| {' | '.join(HEAD)} |"), page.splitlines())
    columns = [dict(version=version, rows=[]) for version in cells_of(head)[2:]]
    for text in itertools.takewhile(lambda text: text.startswith("|"), lines):
        kind, names, *found = cells_of(text)
        for column, cell in zip(columns, found, strict=True):
            column["rows"] += [[kind, name, COUNTS[cell]] for name in names.split(", ")]
    return columns


def cells_of(text):
    """What stands in a line of a table."""
    return text.strip("| ").split(" | ")


def number(version):
    """By which versions are sorted: of `0.11.0.post2` that of `0.11.0`."""
    return [int(part) for part in version.split(".")[:3]]


def rows_of(columns):
    """(kind, name, cells) of each row."""
    counts = [{(kind, name): count for kind, name, count in column["rows"]} for column in columns]
    for row in counts[-1]:
        yield *row, tuple(cell(one.get(row)) for one in counts)


def cell(count):
    """What is said of so many events."""
    return "not tried" if count is None else "yes" if count else "no"


def line(*cells):
    print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
