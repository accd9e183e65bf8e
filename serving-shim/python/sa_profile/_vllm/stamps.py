"""vLLM's own stamps as times of the recorder, which counts `CLOCK_MONOTONIC` as `time.monotonic` does.

Its metrics come from these stamps. An event at the same time gives the same figures. A stamp that is none of that, as of an embedder,
is `None`: the event stands where the plugin sees it.
"""

import time

from .. import now_ns

OLDEST_S = 3600.0  # a wall clock that is set back must not place a request before the server's start


def of_monotonic(seconds):
    """The time of a stamp of `time.monotonic`; `None` of none."""
    return int(seconds * 1e9) if isinstance(seconds, float) and 0 < seconds < 1e9 else None


def of_wall(seconds):
    """The time of a stamp of `time.time`; `None` of none, or where it lies in the future or long ago."""
    if not isinstance(seconds, (int, float)) or not seconds:
        return None
    ago = time.time() - seconds
    ns = now_ns() - int(ago * 1e9) if 0 <= ago <= OLDEST_S else -1
    return ns if ns > 0 else None


def of_event(request, name):
    """When something first happened to vLLM's own request: `QUEUED`, `SCHEDULED`. `None` where it keeps no stamps (`--disable-log-stats`)."""
    for event in getattr(request, "events", None) or ():
        if getattr(getattr(event, "type", None), "name", None) == name:
            return of_monotonic(getattr(event, "timestamp", None))
    return None
