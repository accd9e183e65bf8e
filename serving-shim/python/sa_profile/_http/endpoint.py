"""Records what FastAPI does with a request before and after the application's own code: routing, reading, parsing, validation.

All of it runs in the request's own task, so these spans are inside `http.request`. If a middleware such as starlette's `BaseHTTPMiddleware` creates a child task,
they are on that task's track, and `http.route` is on the event loop's track. The arg `exchange` identifies the request.

These spans are recorded only at level `verbose`: a span in a coroutine costs a request some microseconds, and no figure of the report needs them.
"""

from .._sa_profile import is_enabled, open_span
from .._hooks.chain import chain_in_detail
from . import asgi


def hook_requests(module):
    """Hooks the class of `starlette.requests`."""
    request = getattr(module, "Request", None)
    if request is not None:
        chain_in_detail(request, "body", _observe("http.read", is_after_route=True))
        chain_in_detail(request, "json", _observe("http.parse", is_after_route=True))


def _observe(name, is_after_route=False):
    def observe(*_args, **_kwargs):
        if not is_enabled("verbose"):
            return None
        if is_after_route:
            asgi.record_route()  # the first code that needs the body is the route
        return open_span(name, cat="http", level="verbose", **asgi.exchange_arg()).leave

    return observe


def hook_routing(module):
    """Hooks the functions of `fastapi.routing` that each route calls."""
    chain_in_detail(module, "solve_dependencies", _observe("http.validate"))
    chain_in_detail(module, "run_endpoint_function", _observe("http.endpoint"))
