"""Makes vLLM's own /start_profile and /stop_profile, if the user enabled them, switch the run's recording too."""

from .. import instant
from .._sa_profile import is_enabled
from .._hooks.chain import chain
from .._hooks.control import switch

_started_by_route = False  # true while recording is on because of /start_profile


def hook(client):
    """Hooks the class that vLLM's profile routes call."""
    chain(client, "start_profile", start_profile)
    chain(client, "stop_profile", stop_profile)


def start_profile(*_args, **_kwargs):
    """Starts recording in all processes of the run, if it was off."""

    def leave(_result, error):
        global _started_by_route
        if error is not None:
            return
        if is_enabled():
            instant("vllm.start_profile", cat="serving")
        else:
            _started_by_route = switch("start") or _started_by_route

    return leave


def stop_profile(*_args, **_kwargs):
    """Stops the recording that /start_profile started. A recording that was already on continues."""

    def leave(_result, error):
        global _started_by_route
        if error is not None:
            return
        instant("vllm.stop_profile", cat="serving")
        if _started_by_route:
            _started_by_route = not switch("stop")

    return leave
