"""The trace of a run, merged as ``trace-merge`` does, and what the merge says of it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import _sa_profile

_Path = str | os.PathLike[str]


@dataclass(frozen=True)
class MergeReport:
    """What a merge did. ``print(report)`` shows it as ``trace-merge`` does.

    ``members`` is all that ``trace-merge --report json`` prints; the other attributes are those of its members that most need. Times in it are ns from the start of the trace.
    """

    #: The trace.
    output: Path
    #: Events that came from the inputs, metadata included.
    events_total: int
    #: Events that recorders lost.
    lost_events: int
    #: Damaged places in the inputs.
    damage_total: int
    #: Spans without an end: open when their process was killed, or still.
    unfinished_spans: int
    #: A dict for each process of the trace: ``name``, ``pid``, ``events`` and so on.
    processes: list[dict[str, Any]]
    #: The whole report.
    members: dict[str, Any] = field(repr=False)
    #: The report in words.
    text: str = field(repr=False)

    @property
    def is_clean(self) -> bool:
        """Whether nothing was lost or damaged, and each process could record."""
        return not (self.damage_total or self.lost_events or self.members["refused_processes"])

    def __str__(self) -> str:
        return self.text


def merge(*paths: _Path, output: _Path | None = None) -> MergeReport:
    """Makes one trace for Perfetto of all processes of a run; other threads go on meanwhile.

    Arguments:
        paths: run directories, fragments, and traces of other profilers. By default the directory that this process records into, or has recorded into.
        output: the trace, by default ``trace.json`` in the run directory. It takes the place of an earlier one when it is whole.

    What this process has recorded so far is in it, and its recording goes on. An OSError says why there is no trace: nothing was recorded, or it cannot be written::

        report = sa_profile.merge("profile_out")
        print(report.output, report.events_total, [process["name"] for process in report.processes])
    """
    if not paths:
        paths, output = _own(output)
    _sa_profile.flush()
    return report_of([os.fspath(path) for path in paths], output)


def report_of(paths: list[str], output: _Path | None) -> MergeReport:
    """Merges the paths."""
    text, words = _sa_profile.merge_report(paths, None if output is None else os.fspath(output))
    members = json.loads(text)
    main = ("events_total", "lost_events", "damage_total", "unfinished_spans", "processes")
    return MergeReport(
        output=Path(members["output"]), members=members, text=words, **{name: members[name] for name in main}
    )


def _own(output: _Path | None) -> tuple[tuple[_Path, ...], _Path | None]:
    """The fragments of this process's run, and its trace."""
    fragment, trace = _sa_profile.fragment(), _sa_profile.trace()
    if fragment is None:
        raise FileNotFoundError("nothing to merge: this process has recorded nothing; name a run directory")
    return (fragment.parent,), trace if output is None else output
