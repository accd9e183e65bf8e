"""What FastAPI does with a request before and after the application's own code: finds its route, reads it, parses it, checks it.

All of it runs in the request's own task, so these spans lie within `http.request`.
"""

from .. import span
from .._sa_profile import is_enabled
from ..hooks.chain import chain_if_there, inside
from ..hooks.spans import OpenSpan
from . import asgi


def hook_requests(module):
    """Hooks the class of `starlette.requests`."""
    request = getattr(module, "Request", None)
    if request is not None:
        chain_if_there(request, "body", _observe("http.read"))
        chain_if_there(request, "json", _observe("http.parse"))


def _observe(name):
    def observe(*_args, **_kwargs):
        if not is_enabled():
            return None
        asgi.routed()  # who is the first to want its body is the route that was found
        return OpenSpan(name, cat="http").leave

    return observe


def hook_routing(module):
    """Hooks the functions of `fastapi.routing` that each route calls."""
    chain_if_there(module, "solve_dependencies", span("http.validate", cat="http"), inside)
    chain_if_there(module, "run_endpoint_function", span("http.endpoint", cat="http"), inside)
