"""The turn of the event loop in which those who waited for a step's outputs make their messages of them and send them.

`process_outputs` wakes them, and the event loop runs what was woken in the order in which it was. So what is put in the queue before and after the call
runs directly before the first and directly after the last of them: one span for a step, however many requests it has.

An engine that is called and not served has no such turn, and where its caller runs in a loop (a notebook), that loop waits for all of its steps. So a step
that finds the turn of another one still to come adds none, and takes that one for none either.
"""

import asyncio

from .. import duration, now_ns
from .._hooks.warnings import quietly


class SendingTurn:
    """The turn after one call of `process_outputs`."""

    __slots__ = ("loop", "is_of_one_step", "_outputs", "_began_ns")

    def __init__(self, loop, outputs):
        self.loop = loop
        self.is_of_one_step = True
        self._outputs = outputs
        loop.call_soon(quietly, self._began)

    def woken(self):
        """All who wait have been woken."""
        self.loop.call_soon(quietly, self._ended)

    def _began(self):
        global _to_come
        if _to_come is self:
            _to_come = None
        self._began_ns = now_ns()

    def _ended(self):
        if self.is_of_one_step:
            duration("outputs.send", cat="serving", level="verbose", start_ns=self._began_ns, dur_ns=now_ns() - self._began_ns, outputs=self._outputs)


_to_come = None  # the last turn, until it begins


def turn(outputs):
    """The next turn of the running loop. `None` without a loop, and where that turn is another step's already."""
    global _to_come
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return None
    if not outputs:
        return None
    before = _to_come
    if before is not None and before.loop is loop:
        before.is_of_one_step = False
        return None
    _to_come = SendingTurn(loop, outputs)
    return _to_come
