"""Python's garbage collections as spans, where they take long enough to be felt."""

import gc

from .._sa_profile import Collections

SHORTEST_NS = 1_000_000  # msprof-analyze's threshold; there are hundreds of shorter ones a second


def watch():
    """Records them from now on; a second call does nothing."""
    if not any(isinstance(callback, Collections) for callback in gc.callbacks):
        gc.callbacks.append(Collections(SHORTEST_NS))
