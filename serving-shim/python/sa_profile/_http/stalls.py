"""Records stalls of the event loop: periods in which it did not run for so long that all waiting tasks were delayed noticeably.

A timer of the loop itself detects them: it fires late by the time for which the loop did not run after it was due. The timer runs only while requests are open, and only at level
`verbose`: it wakes the event loop a hundred times a second, which would dominate the cost on a server with few requests.
The loop may have stopped right after a tick, so a span shows the end of a stall and may miss up to one beat of its start.
"""

import asyncio

from .. import now_ns
from .._sa_profile import is_enabled, thread_duration
from .._hooks.warnings import quietly

BEAT_NS = 10_000_000
LATE_NS = 10_000_000  # a stall of 20 ms delays the timer by at least this much, because a beat may come right before it


class Heartbeat:
    """Timers of the event loops, one for each loop of the process. `busy` returns true while they are needed."""

    def __init__(self, busy):
        self._busy = busy
        self._loops = set()  # loops that have a timer

    def start(self):
        """Starts the timer of the running loop, unless it has one."""
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            for one in tuple(self._loops):
                if one.is_closed():  # it was closed before its last beat
                    self._loops.discard(one)
            self._loops.add(loop)
            self._next(loop)

    def forget(self):
        """Forgets all loops after a fork, because they run in the parent."""
        self._loops.clear()

    def _next(self, loop):
        loop.call_later(BEAT_NS / 1e9, quietly, self._beat, loop, now_ns() + BEAT_NS)

    def _beat(self, loop, due_ns):
        late_ns = now_ns() - due_ns
        if late_ns >= LATE_NS:
            thread_duration("event_loop.stall", "http", due_ns, late_ns, {})
        if self._busy() and is_enabled("verbose"):
            self._next(loop)
        else:
            self._loops.discard(loop)
