"""vLLM's own stamps as times of the recorder, which counts `CLOCK_MONOTONIC` as `time.monotonic` does.

Its metrics come from these stamps. An event at the same time gives the same figures.
"""

import time

from .. import now_ns

OLDEST_S = 3600.0  # a wall clock that is set back must not place a request before the server's start


def of_monotonic(seconds):
    """The time of a stamp of `time.monotonic`; `None` of none."""
    return int(seconds * 1e9) if seconds else None


def of_wall(seconds):
    """The time of a stamp of `time.time`; `None` of none, or where it lies in the future or long ago."""
    if not seconds:
        return None
    ago = time.time() - seconds
    return now_ns() - int(ago * 1e9) if 0 <= ago <= OLDEST_S else None


def of_event(request, name):
    """When something first happened to vLLM's own request: `QUEUED`, `SCHEDULED`. `None` where it keeps no stamps (`--disable-log-stats`)."""
    for event in getattr(request, "events", None) or ():
        if event.type.name == name:
            return of_monotonic(event.timestamp)
    return None
