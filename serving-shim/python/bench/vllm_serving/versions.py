"""The table of docs/vllm.md that says what the trace of each version has, from what the case `names` has kept.

    python serving-shim/python/bench/vllm_serving/versions.py KEPT…

Each argument is the --keep folder of one version. Rows in a line of one kind of process that are alike share one.
"""

import itertools
import json
import sys
from pathlib import Path

from names import COLUMN


def main(folders):
    """Prints the table as Markdown."""
    if not folders:
        print(__doc__, file=sys.stderr)
        return 2
    columns = [json.loads((Path(folder) / COLUMN).read_text()) for folder in folders]
    columns.sort(key=lambda column: [int(part) for part in column["version"].split(".")])
    line("process", "span, instant, counter or arg", *(column["version"] for column in columns))
    line(*["---"] * (2 + len(columns)))
    for (kind, cells), rows in itertools.groupby(rows_of(columns), key=lambda row: (row[0], row[2])):
        line(kind, ", ".join(name for _, name, _ in rows), *cells)
    return 0


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
