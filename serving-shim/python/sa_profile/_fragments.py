"""All fragments of a directory in one trace, by the Rust merge and without the interpreter's lock: other threads and the event loop's clients go on meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

from . import _sa_profile


def merge_fragments(fragments_dir: str | os.PathLike[str], trace_file: str | os.PathLike[str]) -> int:
    """Merges ``trace.*.jsonl`` in the order of their names; returns how many events the trace has.

    Lines stand in the trace as they stand in the fragments, those without a time or a process included; what is no JSON object is left out, and counted in the trace's ``otherData``.
    What killed processes had not written to their fragments yet is there as well. The trace takes the place of an earlier one when it is whole; the fragments stay.
    """
    trace_file = Path(trace_file)
    trace_file.parent.mkdir(parents=True, exist_ok=True)
    return _sa_profile.merge(os.fspath(fragments_dir), os.fspath(trace_file))
