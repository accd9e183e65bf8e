"""Measures the turn of the event loop in which the requests that waited for a step's outputs build and send their messages.

`process_outputs` wakes their tasks, and the event loop runs callbacks in the order in which they were scheduled. So a callback scheduled before the call and one
scheduled after it run directly before the first task and directly after the last. This gives one span per step, however many requests it has.

An engine that is called directly, not served, has no such turn. If its caller runs in an event loop (a notebook), that loop is blocked for all steps. So a step
that finds the turn of another step still pending adds none, and that turn records no span either.
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

    def schedule_end(self):
        """Schedules the end of the turn, after all waiting tasks have been woken."""
        self.loop.call_soon(quietly, self._ended)

    def _began(self):
        global _pending
        if _pending is self:
            _pending = None
        self._began_ns = now_ns()

    def _ended(self):
        if self.is_of_one_step:
            duration("outputs.send", cat="serving", level="verbose", start_ns=self._began_ns, dur_ns=now_ns() - self._began_ns, outputs=self._outputs)


_pending = None  # the last scheduled turn, until it begins


def next_turn(outputs):
    """Schedules the next turn of the running loop. Returns `None` without a loop, or if the next turn belongs to another step."""
    global _pending
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return None
    if not outputs:
        return None
    before = _pending
    if before is not None and before.loop is loop:
        before.is_of_one_step = False
        return None
    _pending = SendingTurn(loop, outputs)
    return _pending
