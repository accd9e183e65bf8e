"""Spans of HTTP requests for any ASGI application: FastAPI, Starlette, or one of your own::

    from fastapi import FastAPI
    from sa_profile.asgi import ProfileMiddleware

    app = FastAPI()
    app.add_middleware(ProfileMiddleware)

Each request is a span `http.request` with its method, path and status, from when the application got it to the end of its answer.
"""

from ._middleware import ProfileMiddleware

__all__ = ["ProfileMiddleware"]
