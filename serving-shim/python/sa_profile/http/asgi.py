"""HTTP requests, as a server hands them to an ASGI application: from their arrival to the end of the answer.

Under load a request waits for the event loop before the application sees it. That time is the arg `waited_us` of its span, within `uncertainty_us`, and
part of `elapsed_us` of its first chunk and of `answered_us`, which is when the last part of the answer was sent.
"""

import asyncio
import contextvars

from .. import flow, instant, now_ns, set_process_name
from .._sa_profile import is_enabled
from ..hooks.chain import quietly
from ..hooks.flows import REQUEST
from ..hooks.spans import OpenSpan
from .awake import AWAKE

# In a request's ASGI scope: when its first byte came, with what that may be off, and when the last part of its answer was sent.
RECEIVED, ANSWERED = "sa_profile.received", "sa_profile.answered_ns"

_current = contextvars.ContextVar("sa_profile_http", default=None)


class Exchange:
    """One request and its answer."""

    __slots__ = ("scope", "received_ns", "uncertainty_ns", "began_ns", "task", "status", "request_ids", "external_ids", "answered", "ended_ns", "unlinked")

    def __init__(self, scope):
        self.scope = scope
        self.began_ns = now_ns()
        self.received_ns, self.uncertainty_ns = scope.get(RECEIVED, (self.began_ns, 0))
        self.task = asyncio.current_task()
        self.status = None
        self.request_ids = []
        self.external_ids = []
        self.answered = False
        self.ended_ns = None
        self.unlinked = []  # requests whose flows could not yet be started here

    def add(self, request_id, external_id):
        """The HTTP request has become a request of the engine."""
        self.request_ids.append(request_id)
        if external_id not in self.external_ids:
            self.external_ids.append(external_id)
        self.unlinked.append(request_id)

    def start_flows(self):
        """Starts the requests' flows at the arrival of the HTTP request.

        A flow binds to the span that is open at its time on its row, and the row is the task's. A middleware may have its
        application run in another task, so this also waits for what comes back to our own.
        """
        if self.unlinked and self.task is _task():
            for request_id in self.unlinked:
                flow(REQUEST, request_id, "start", ts_ns=self.began_ns)
            self.unlinked.clear()

    def sent(self, message):
        """A part of the answer goes out."""
        self.start_flows()
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message.get("body") and not self.answered:
            self.answered = True
            # What is handed over now leaves the process at the end of this turn of the event loop, before the next one.
            asyncio.get_running_loop().call_soon(quietly, self._first_chunk_left, now_ns())
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self.ended_ns = self.scope[ANSWERED] = now_ns()
            AWAKE.look()  # the next request of this connection may come at once

    def _first_chunk_left(self, handed_over_ns):
        elapsed_ns = (handed_over_ns + now_ns()) // 2 - self.received_ns
        instant("http.first_chunk", cat="http", request_ids=self.request_ids, elapsed_us=elapsed_ns / 1000)

    def args(self):
        """What is known at its end."""
        self.start_flows()
        known = dict(status=self.status)
        if self.received_ns != self.began_ns:  # told by the protocol
            known["waited_us"] = (self.began_ns - self.received_ns) / 1000
            known["uncertainty_us"] = self.uncertainty_ns / 1000
        if self.ended_ns is not None:
            known["answered_us"] = (self.ended_ns - self.received_ns) / 1000
        if self.request_ids:
            known.update(request_ids=self.request_ids, external_ids=self.external_ids)
        return known


class HttpSpans:
    """An ASGI application around another one. `process_name` gives the process's name at the first request."""

    def __init__(self, app, process_name):
        self.app = app
        self._process_name = process_name
        self._named = False

    def __getattr__(self, name):
        return getattr(self.app, name)

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or not is_enabled():
            return await self.app(scope, receive, send)
        opened = quietly(self._begin, scope)
        exchange = quietly(Exchange, scope)
        if opened is None or exchange is None:
            return await self.app(scope, receive, send)

        def observed(message):
            if not exchange.answered or not message.get("more_body"):
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
            quietly(self._end, opened, exchange, error)
            quietly(_current.reset, before)  # fails where it is closed from elsewhere, as by the collector

    @staticmethod
    def _end(opened, exchange, error):
        args = {}
        try:
            args = exchange.args()
        finally:
            opened.close(error, **args)

    def _begin(self, scope):
        if not self._named:
            self._named = True
            set_process_name(self._process_name())
        return OpenSpan("http.request", cat="http", method=scope.get("method"), path=scope.get("path"))


def link(request_id, external_id):
    """Puts a request's flow through the span that is open now; it starts at the HTTP request's arrival, if there is one."""
    exchange = _current.get()
    if exchange is None:
        flow(REQUEST, request_id, "start")
        return
    exchange.add(request_id, external_id)
    exchange.start_flows()
    flow(REQUEST, request_id, "step")


def _task():
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
