"""Merges a run into a trace, like ``trace-merge``, and returns the report."""

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
    """The result of a merge. ``print(report)`` prints the text that ``trace-merge`` prints.

    ``members`` contains everything that ``trace-merge --report json`` prints. The other attributes are its most important members. Times in it are ns from the start of the trace.
    """

    #: Path of the trace.
    output: Path
    #: Number of events from the inputs, including metadata.
    events_total: int
    #: Number of events that recorders lost.
    lost_events: int
    #: Number of damaged places in the inputs.
    damage_total: int
    #: Number of spans without an end. They were open when their process was killed, or are still open.
    unfinished_spans: int
    #: A dict for each process in the trace, with ``name``, ``pid``, ``events`` and more.
    processes: list[dict[str, Any]]
    #: The whole report.
    members: dict[str, Any] = field(repr=False)
    #: The report as text.
    text: str = field(repr=False)

    @property
    def is_clean(self) -> bool:
        """True if nothing was lost or damaged and every process was able to record."""
        return not (self.damage_total or self.lost_events or self.members["refused_processes"])

    def __str__(self) -> str:
        return self.text


def merge(*paths: _Path, output: _Path | None = None) -> MergeReport:
    """Merges all processes of a run into one trace for Perfetto. Other threads continue meanwhile.

    Arguments:
        paths: run directories, fragments, and traces of other profilers. By default the directory that this process records, or has recorded, into.
        output: the path of the trace, by default ``trace.json`` in the run directory. The new trace replaces an earlier one once it is complete.

    The trace includes what this process has recorded so far, and its recording continues. Raises an OSError if nothing was recorded or if the trace cannot be written::

        report = sa_profile.merge("profile_out")
        print(report.output, report.events_total, [process["name"] for process in report.processes])
    """
    if not paths:
        paths, output = _own_run(output)
    _sa_profile.flush()
    return merge_paths([os.fspath(path) for path in paths], output)


def merge_paths(paths: list[str], output: _Path | None) -> MergeReport:
    """Merges the paths and returns the report."""
    json_text, text = _sa_profile.merge_report(paths, None if output is None else os.fspath(output))
    members = json.loads(json_text)
    main = ("events_total", "lost_events", "damage_total", "unfinished_spans", "processes")
    return MergeReport(
        output=Path(members["output"]), members=members, text=text, **{name: members[name] for name in main}
    )


def _own_run(output: _Path | None) -> tuple[tuple[_Path, ...], _Path | None]:
    """Returns the directory of this process's fragments, and the path of its trace."""
    fragment, trace = _sa_profile.fragment(), _sa_profile.trace()
    if fragment is None:
        raise FileNotFoundError("nothing to merge: this process has recorded nothing; name a run directory")
    return (fragment.parent,), trace if output is None else output
