"""The drop-in's module for merging the fragments of a run into one trace."""

from . import recorder
from .recorder import merge_fragments

__all__ = ["merge_fragments", "merge_profile"]


def merge_profile() -> int:
    """Stops recording in this process and merges the run. Returns the number of events in the trace, or 0 if profiling is disabled."""
    return recorder.merge_profile()
