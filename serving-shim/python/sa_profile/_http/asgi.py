"""HTTP requests that a server passes to an ASGI application. A native object records each exchange, from its arrival to the end of the answer."""

import contextvars
import os

from .. import duration, now_ns
from .._sa_profile import Exchange, begin_exchange
from .._hooks.chain import chain_details
from .._hooks.warnings import failed, quietly
from .refusal import reason
from .stalls import Heartbeat

_current: contextvars.ContextVar[Exchange | None] = contextvars.ContextVar("sa_profile_http", default=None)
_under_way = set()  # numbers of open exchanges, at level `verbose`
_heartbeat = Heartbeat(lambda: bool(_under_way))


def _in_child():
    """Forgets the open exchanges after a fork, because they belong to the parent."""
    _under_way.clear()
    _heartbeat.forget()


os.register_at_fork(after_in_child=_in_child)


class HttpSpans:
    """An ASGI application that wraps another one."""

    def __init__(self, app, holds_spans=True):
        self.app = app
        self._holds_spans = holds_spans  # true if the application opens spans while it handles a request

    def __getattr__(self, name):
        return getattr(self.app, name)

    async def __call__(self, scope, receive, send):
        # Written out instead of using `quietly`, because every request passes through here.
        try:
            exchange = begin_exchange(scope, send, self._holds_spans)
        except Exception as error:
            exchange = failed(begin_exchange, error)
        if exchange is None:
            return await self.app(scope, receive, send)
        if exchange.is_detailed:
            quietly(self._watch, exchange)

        async def observed_receive():
            message = await receive()
            exchange.client_message(message)
            return message

        before = _current.set(exchange)
        try:
            result = await self.app(scope, observed_receive, exchange.send)
        except BaseException as error:
            self._end(exchange, error, before)
            raise
        self._end(exchange, None, before)
        return result

    @staticmethod
    def _watch(exchange):
        """Watches the event loop while requests wait for it."""
        _under_way.add(exchange.number)
        _heartbeat.start()
        chain_details()

    @staticmethod
    def _end(exchange, error, before):
        _under_way.discard(exchange.number)
        try:
            exchange.end(error, reason)
        except Exception as raised:
            failed(exchange.end, raised)
        try:
            _current.reset(before)
        except ValueError:
            pass  # the coroutine was closed from elsewhere, for example by the garbage collector


# Returns the exchange that the running code works for, or `None`.
current = _current.get


def record_route():
    """Records the time until a request has passed the middlewares and reached its route, which is about to read it. Runs in the request's own task or a child of it."""
    exchange = current()
    if exchange is not None and exchange.mark_routed():
        start_ns = exchange.began_ns + 1  # after the start of the request's flow arrow, which is in `http.request`
        duration("http.route", cat="http", level="verbose", start_ns=start_ns, dur_ns=now_ns() - start_ns, exchange=exchange.number)


def exchange_arg():
    """Returns the number of the HTTP request that the running code works for, as an arg of its spans."""
    found = current()
    return {} if found is None else dict(exchange=found.number)
