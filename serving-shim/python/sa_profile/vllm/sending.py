"""The turn of the event loop in which those who waited for a step's outputs make their messages of them and send them.

`process_outputs` wakes them, and the event loop runs what was woken in the order in which it was. So what is put in the queue before and after the call
runs directly before the first and directly after the last of them: one span for a step, however many requests it has.
"""

import asyncio

from .. import duration, now_ns
from ..hooks.chain import quietly


class SendingTurn:
    """The turn after one call of `process_outputs`."""

    __slots__ = ("_loop", "_outputs", "_began_ns")

    def __init__(self, loop, outputs):
        self._loop = loop
        self._outputs = outputs
        loop.call_soon(quietly, self._began)

    def woken(self):
        """All who wait have been woken."""
        self._loop.call_soon(quietly, self._ended)

    def _began(self):
        self._began_ns = now_ns()

    def _ended(self):
        duration("outputs.send", cat="serving", start_ns=self._began_ns, dur_ns=now_ns() - self._began_ns, outputs=self._outputs)


def turn(outputs):
    """The next turn of the running loop; `None` without one, as in an engine that is called and not served."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return None
    return SendingTurn(loop, outputs) if outputs else None
