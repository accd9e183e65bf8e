"""vLLM's own stamps as times of the recorder, which counts `CLOCK_MONOTONIC` as `time.monotonic` does.

Its metrics come from these stamps. An event at the same time gives the same figures. A stamp that is none of that, as of an embedder,
is `None`: the event stands where the plugin sees it.
"""

from .._sa_profile import of_monotonic


def of_event(request, name):
    """When something first happened to vLLM's own request: `QUEUED`, `SCHEDULED`. `None` where it keeps no stamps (`--disable-log-stats`)."""
    for event in getattr(request, "events", None) or ():
        if getattr(getattr(event, "type", None), "name", None) == name:
            return of_monotonic(getattr(event, "timestamp", None))
    return None
