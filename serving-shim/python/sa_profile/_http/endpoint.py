"""What FastAPI does with a request before and after the application's own code: finds its route, reads it, parses it, checks it.

All of it runs in the request's own task, so that these spans lie within `http.request`, or in a child of that task where a middleware makes one
(starlette's `BaseHTTPMiddleware`). There they have a row of their own, and `http.route` stands on the event loop's. The arg `exchange` says whose they are.

These spans are recorded at level `verbose` only: a span in a coroutine costs a request some microseconds, and no figure of the report needs them.
"""

from .._sa_profile import is_enabled, open_span
from .._hooks.chain import chain_in_detail
from . import asgi


def hook_requests(module):
    """Hooks the class of `starlette.requests`."""
    request = getattr(module, "Request", None)
    if request is not None:
        chain_in_detail(request, "body", _observe("http.read", routed=True))
        chain_in_detail(request, "json", _observe("http.parse", routed=True))


def _observe(name, routed=False):
    def observe(*_args, **_kwargs):
        if not is_enabled("verbose"):
            return None
        if routed:
            asgi.routed()  # who is the first to want its body is the route that was found
        return open_span(name, cat="http", level="verbose", **asgi.exchange()).leave

    return observe


def hook_routing(module):
    """Hooks the functions of `fastapi.routing` that each route calls."""
    chain_in_detail(module, "solve_dependencies", _observe("http.validate"))
    chain_in_detail(module, "run_endpoint_function", _observe("http.endpoint"))
