"""Makes vLLM's own /start_profile and /stop_profile, if the user enabled them, switch the run's recording too."""

from .._engine import profile_routes
from .._hooks.chain import chain


def hook(client):
    """Hooks the class that vLLM's profile routes call."""
    chain(client, "start_profile", lambda *_args, **_kwargs: _leave(profile_routes.started))
    chain(client, "stop_profile", lambda *_args, **_kwargs: _leave(profile_routes.stopped))


def _leave(switch):
    return lambda _result, error: switch() if error is None else None
