"""Spans of HTTP requests for any ASGI application: FastAPI, Starlette, or one of your own::

    from fastapi import FastAPI
    from sa_profile.asgi import ProfileMiddleware

    app = FastAPI()
    app.add_middleware(ProfileMiddleware)

Each request is a span `http.request` with its method, path and status. It lasts from when the application gets the request until the end of its answer.
"""

from .._hooks.imports import when_imported
from .._http import endpoint, uvicorn
from .._http.asgi import HttpSpans

__all__ = ["ProfileMiddleware"]


class ProfileMiddleware(HttpSpans):
    """An ASGI application that wraps another one and records its HTTP requests. Everything else is passed on unchanged, and so are requests while nothing is recorded.

    Arguments:
        app: the application.

    An example::

        app = sa_profile.asgi.ProfileMiddleware(app)      # or app.add_middleware(ProfileMiddleware)
    """

    def __init__(self, app):
        super().__init__(app)
        # With these hooks, a request's span shows how long the request waited for the application. Registering a hook again has no effect.
        when_imported("uvicorn.protocols.http.httptools_impl", uvicorn.hook_protocol)
        when_imported("fastapi.routing", endpoint.hook_routing)
        when_imported("starlette.requests", endpoint.hook_requests)
