"""Records long garbage collections of Python as spans."""

import gc

from .._sa_profile import CollectionSpans

SHORTEST_NS = 1_000_000  # the threshold of msprof-analyze; there are hundreds of shorter collections per second


def watch():
    """Starts to record collections. A second call does nothing."""
    if not any(isinstance(callback, CollectionSpans) for callback in gc.callbacks):
        gc.callbacks.append(CollectionSpans(SHORTEST_NS))
