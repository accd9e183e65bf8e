"""Spans that begin and end in two functions, as observers need them."""

from .. import span


class OpenSpan:
    """A span that is open since it was made. Only the thread, or task, that opened it may close it."""

    __slots__ = ("_span",)

    def __init__(self, name, **args):
        self._span = span(name, **args).__enter__()

    def close(self, error=None, **args):
        """Ends the span with these args; with the type of the exception that ended it, if one did."""
        try:
            if args:
                self._span.arg(**args)
        finally:
            self._span.__exit__(None if error is None else type(error))

    def leave(self, _result, error):
        """The end of an observer that has nothing more to say."""
        self.close(error)
