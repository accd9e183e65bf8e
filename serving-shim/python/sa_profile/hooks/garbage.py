"""Python's garbage collections as spans, where they take long enough to be felt."""

import gc

from .. import now_ns
from .._sa_profile import is_enabled, is_to_begin, thread_duration
from .chain import quietly

SHORTEST_NS = 1_000_000  # msprof-analyze's threshold; there are hundreds of shorter ones a second

_began_ns = 0  # only one collection runs at a time


def watch():
    """Records them from now on; a second call does nothing."""
    if _collected not in gc.callbacks:
        gc.callbacks.append(_collected)


def _collected(phase, info):
    global _began_ns
    if phase == "start":
        _began_ns = now_ns() if is_enabled() else 0
    elif _began_ns:
        quietly(_ended, _began_ns, info)
        _began_ns = 0


def _ended(began_ns, info):
    took_ns = now_ns() - began_ns
    # The first event of a run makes its process the main one: that is for the server to decide.
    if took_ns >= SHORTEST_NS and not is_to_begin():
        facts = dict(generation=info["generation"], collected=info["collected"])
        # It stops the thread, not only the task that happens to run.
        thread_duration("gc.collect", "python", began_ns, took_ns, facts)
