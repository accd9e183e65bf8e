"""HTTP requests, as a server hands them to an ASGI application: from their arrival to the end of the answer.

Under load a request waits for the event loop before the application sees it. That time is the arg `waited_us` of its span, within `uncertainty_us`, and
part of `elapsed_us` of its first chunk and of `answered_us`, which is when the last part of the answer was sent.
"""

import asyncio
import contextvars
import itertools
import os

from .. import duration, flow, instant, now_ns
from .._sa_profile import is_enabled, open_span, start_task_flow
from .._hooks.warnings import quietly
from .._hooks.flows import REQUEST
from .awake import AWAKE
from .refusal import Refusal, header
from .stalls import Heartbeat

# In a request's ASGI scope: when its first byte came, with what that may be off, and when the last part of its answer was sent.
RECEIVED, ANSWERED = "sa_profile.received", "sa_profile.answered_ns"
# There too: the request has its span. A server may be hooked, and its application have a middleware of ours.
HAS_SPAN = "sa_profile.has_span"

_current = contextvars.ContextVar("sa_profile_http", default=None)
_numbers = itertools.count(1)
_under_way = set()  # numbers of exchanges
_heartbeat = Heartbeat(lambda: bool(_under_way))


def _in_child():
    """What was under way when the process forked is the parent's."""
    _under_way.clear()
    _heartbeat.forget()


os.register_at_fork(after_in_child=_in_child)


class Exchange:
    """One request and its answer."""

    __slots__ = (
        "number", "scope", "received_ns", "uncertainty_ns", "began_ns", "task", "status", "refusal",
        "request_ids", "external_ids", "is_routed", "answered", "ended_ns", "left_ns",
    )

    def __init__(self, number, scope):
        self.number = number
        self.scope = scope
        self.began_ns = now_ns()
        self.received_ns, self.uncertainty_ns = scope.get(RECEIVED, (self.began_ns, 0))
        self.task = asyncio.current_task()
        self.status = None
        self.request_ids = []
        self.external_ids = []
        self.answered = False
        self.ended_ns = None
        self.left_ns = None  # when the client went away before the end of its answer
        self.refusal = None
        self.is_routed = False

    def add(self, request_id, external_id):
        """The HTTP request has become a request of the engine. Its flow starts here, in the span that its own task has open, whichever task runs."""
        self.request_ids.append(request_id)
        if external_id not in self.external_ids:
            self.external_ids.append(external_id)
        if not start_task_flow(self.task, REQUEST, request_id, self.began_ns):
            flow(REQUEST, request_id, "start")

    def got(self, message):
        """The server says something of the client."""
        if message["type"] == "http.disconnect" and self.ended_ns is None and self.left_ns is None:
            self.left_ns = now_ns()

    def sent(self, message):
        """A part of the answer goes out."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.refusal = Refusal() if self.status >= 400 else None
            return
        if self.refusal is not None:
            self.refusal.add(message.get("body"))
        if message.get("body") and not self.answered:
            self.answered = True
            # What is handed over now leaves the process at the end of this turn of the event loop, before the next one.
            asyncio.get_running_loop().call_soon(quietly, self._first_chunk_left, now_ns())
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self.ended_ns = self.scope[ANSWERED] = now_ns()
            AWAKE.most_ns()  # the next request of this connection may come at once

    def _first_chunk_left(self, handed_over_ns):
        elapsed_ns = (handed_over_ns + now_ns()) // 2 - self.received_ns
        instant("http.first_chunk", cat="http", request_ids=self.request_ids, elapsed_us=elapsed_ns / 1000)

    def args(self):
        """What is known at its end."""
        known = dict(status=self.status)
        if self.received_ns != self.began_ns:  # told by the protocol
            known["waited_us"] = (self.began_ns - self.received_ns) / 1000
            known["uncertainty_us"] = self.uncertainty_ns / 1000
        if self.ended_ns is not None:
            known["answered_us"] = (self.ended_ns - self.received_ns) / 1000
        if self.left_ns is not None:
            known["disconnected_us"] = (self.left_ns - self.received_ns) / 1000
        if self.request_ids:
            known.update(request_ids=self.request_ids, external_ids=self.external_ids)
        if self.refusal is not None:
            known.update(self.refusal.reason())
        return known


class HttpSpans:
    """An ASGI application around another one."""

    def __init__(self, app):
        self.app = app

    def __getattr__(self, name):
        return getattr(self.app, name)

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or HAS_SPAN in scope or not is_enabled():
            return await self.app(scope, receive, send)
        number = next(_numbers)
        opened = quietly(self._begin, number, scope)
        exchange = quietly(Exchange, number, scope)
        if opened is None or exchange is None:
            return await self.app(scope, receive, send)
        quietly(_watch, number)
        scope[HAS_SPAN] = True

        def observed(message):
            # Of an answer that goes well, what lies between its first and its last part is only passed on.
            if not exchange.answered or exchange.refusal is not None or not message.get("more_body"):
                quietly(exchange.sent, message)
            return send(message)

        async def heard():
            message = await receive()
            quietly(exchange.got, message)
            return message

        before = _current.set(exchange)
        error = None
        try:
            return await self.app(scope, heard, observed)
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
            _under_way.discard(exchange.number)
            if error is not None:
                args.pop("error", None)  # the exception says more
            opened.close(error, args)

    @staticmethod
    def _begin(number, scope):
        asked = dict(method=scope.get("method"), path=scope.get("path"), exchange=number)
        request_id = header(scope, b"x-request-id")
        if request_id is not None:
            asked["x_request_id"] = request_id
        return open_span("http.request", cat="http", **asked)


def _watch(number):
    """The event loop is watched while somebody waits for it."""
    _under_way.add(number)
    _heartbeat.start()


def link(request_id, external_id):
    """Puts a request's flow through the span that is open now; it starts at the HTTP request's arrival, if there is one."""
    exchange = _current.get()
    if exchange is None:
        flow(REQUEST, request_id, "start")
        return
    exchange.add(request_id, external_id)
    flow(REQUEST, request_id, "step")


def routed():
    """The request has passed the middlewares and found its route, which begins to read it. What runs now is the request's own task, or a child of it."""
    current = _current.get()
    if current is not None and not current.is_routed:
        current.is_routed = True
        start_ns = current.began_ns + 1  # the request's arrow starts before, in `http.request`
        duration("http.route", cat="http", start_ns=start_ns, dur_ns=now_ns() - start_ns, exchange=current.number)


def exchange():
    """The number of the HTTP request that this code works for, as an arg of its spans."""
    current = _current.get()
    return {} if current is None else dict(exchange=current.number)
