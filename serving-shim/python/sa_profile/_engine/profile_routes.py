"""Makes a server's own /start_profile and /stop_profile routes switch the run's recording too."""

from .. import instant
from .._sa_profile import is_enabled
from .._hooks.control import switch
from .._hooks.warnings import engine

_started_by_route = False  # true while recording is on because of /start_profile


def started(step_name=None, steps=None):
    """Starts recording in all processes of the run if it was off, because the server has started its profiler. With `steps`, it stops after that many spans of this name."""
    global _started_by_route
    if is_enabled():
        instant(f"{engine().lower()}.start_profile", cat="serving")
    else:
        limit = {} if steps is None else dict(steps=dict(name=step_name, count=steps))
        _started_by_route = switch("start", **limit) or _started_by_route


def stopped():
    """Stops the recording that `started` has started. A recording that was already on continues."""
    global _started_by_route
    instant(f"{engine().lower()}.stop_profile", cat="serving")
    if _started_by_route:
        _started_by_route = not switch("stop")
