"""The middleware, and what it hooks so that a request's span says how long it waited for the application."""

from .._hooks.imports import when_imported
from .._http import endpoint, uvicorn
from .._http.asgi import HttpSpans


class ProfileMiddleware(HttpSpans):
    """An ASGI application around another one, which records each of its HTTP requests. What is no HTTP request passes through, and so does all else while nothing is recorded.

    Arguments:
        app: the application.

    An example::

        app = sa_profile.asgi.ProfileMiddleware(app)      # or app.add_middleware(ProfileMiddleware)
    """

    def __init__(self, app):
        super().__init__(app)
        # Each hooks once, whoever asks for it.
        when_imported("uvicorn.protocols.http.httptools_impl", uvicorn.hook_protocol)
        when_imported("fastapi.routing", endpoint.hook_routing)
        when_imported("starlette.requests", endpoint.hook_requests)
