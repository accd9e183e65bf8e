"""HTTP requests, as uvicorn hands them to vLLM's application: from their arrival to the end of the answer."""

import asyncio
import contextvars

from .. import flow, instant, is_enabled, now_ns, set_process_name
from .chain import chain, quietly, tell
from .names import api_server_name
from .requests import REQUEST
from .spans import OpenSpan

_current = contextvars.ContextVar("sa_profile_http", default=None)


def hook(module):
    """Hooks the class of `uvicorn.config`. Its application is known once it is loaded, whoever made it."""
    config = getattr(module, "Config", None)
    if config is None:
        tell("this uvicorn has no Config: HTTP spans are missing")
    else:
        chain(config, "load", load)


def load(config, *_args, **_kwargs):
    """The server's application is complete: put ours around it."""

    def leave(_result, error):
        app = getattr(config, "loaded_app", None)
        if error is None and app is not None and not isinstance(app, HttpSpans):
            config.loaded_app = HttpSpans(app)

    return leave


class Exchange:
    """One request and its answer."""

    __slots__ = ("began_ns", "task", "status", "request_ids", "external_ids", "answered")

    def __init__(self):
        self.began_ns = now_ns()
        self.task = asyncio.current_task()
        self.status = None
        self.request_ids = []
        self.external_ids = []
        self.answered = False

    def sent(self, message):
        """A part of the answer goes out."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message.get("body") and not self.answered:
            self.answered = True
            instant("http.first_chunk", cat="http", request_ids=self.request_ids)

    def args(self):
        """What is known at its end."""
        known = dict(status=self.status)
        if self.request_ids:
            known.update(request_ids=self.request_ids, external_ids=self.external_ids)
        return known


class HttpSpans:
    """An ASGI application around another one."""

    def __init__(self, app):
        self.app = app
        self._named = False

    def __getattr__(self, name):
        return getattr(self.app, name)

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or not is_enabled():
            return await self.app(scope, receive, send)
        opened = quietly(self._begin, scope)
        exchange = quietly(Exchange)
        if opened is None or exchange is None:
            return await self.app(scope, receive, send)

        def observed(message):
            if not exchange.answered:
                quietly(exchange.sent, message)
            return send(message)

        before = _current.set(exchange)
        error = None
        try:
            return await self.app(scope, receive, observed)
        except BaseException as raised:
            error = raised
            raise
        finally:
            _current.reset(before)
            quietly(opened.close, error, **exchange.args())

    def _begin(self, scope):
        if not self._named:
            self._named = True
            set_process_name(api_server_name())
        return OpenSpan("http.request", cat="http", method=scope.get("method"), path=scope.get("path"))


def link(request_id, external_id):
    """Starts a request's flow, at the arrival of the HTTP request it came with. A span must be open."""
    exchange = _current.get()
    if exchange is None:
        flow(REQUEST, request_id, "start")
        return
    exchange.request_ids.append(request_id)
    if external_id not in exchange.external_ids:
        exchange.external_ids.append(external_id)
    # A flow binds to the span that is open at its time on its lane, and the lane is the task's.
    if exchange.task is _task():
        flow(REQUEST, request_id, "start", ts_ns=exchange.began_ns)
        flow(REQUEST, request_id, "step")
    else:
        flow(REQUEST, request_id, "start")


def _task():
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
