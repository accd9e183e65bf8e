"""Spans that begin and end in two functions, as observers need them."""

from .. import now_ns, span
from .._sa_profile import end_at


class OpenSpan:
    """A span that is open since it was made. Only the thread, or task, that opened it may close it."""

    __slots__ = ("_span", "_ended_ns")

    def __init__(self, name, **args):
        self._ended_ns = None
        self._span = span(name, **args).__enter__()

    def returned(self):
        """What the span is around has ended: what is gathered from now on until `close` is no part of it. Returns the time."""
        self._ended_ns = ended_ns = now_ns()
        return ended_ns

    def close(self, error=None, /, **args):
        """Ends the span with these args; with the type of the exception that ended it, if one did."""
        end_at(self._span, self._ended_ns or now_ns(), None if error is None else type(error), args)

    def leave(self, _result, error):
        """The end of an observer that has nothing more to say."""
        self.close(error)
