"""Stalls of the event loop: it did not run for so long that everybody who waits for it felt it.

A timer of the loop itself shows them: it comes late by as long as the loop did not run. It ticks only while requests are under way.
"""

import asyncio

from .. import now_ns
from .._sa_profile import is_enabled, thread_duration
from ..hooks.chain import quietly

BEAT_NS = 20_000_000
SHORTEST_NS = 20_000_000


class Heartbeat:
    """The timer of one event loop. `busy` says whether it is still needed."""

    def __init__(self, busy):
        self._busy = busy
        self._loop = None
        self._due_ns = 0

    def start(self):
        """Begins to beat on the running loop; where it beats already this does nothing."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._next()

    def _next(self):
        self._due_ns = now_ns() + BEAT_NS
        self._loop.call_later(BEAT_NS / 1e9, quietly, self._beat)

    def _beat(self):
        late_ns = now_ns() - self._due_ns
        if late_ns >= SHORTEST_NS:
            thread_duration("event_loop.stall", "http", self._due_ns, late_ns, {})
        if self._busy() and is_enabled():
            self._next()
        else:
            self._loop = None
