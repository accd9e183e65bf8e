"""Stalls of the event loop: it did not run for so long that everybody who waits for it felt it.

A timer of the loop itself shows them: it comes late by as long as the loop did not run since it was due. It ticks only while requests are under way, and only at level
`verbose`: it wakes the event loop a hundred times a second, and on a server with few requests that would cost more than everything else.
The loop may have stopped right after a tick, so what is shown is the last part of the stall, all but one beat at most.
"""

import asyncio

from .. import now_ns
from .._sa_profile import is_enabled, thread_duration
from .._hooks.warnings import quietly

BEAT_NS = 10_000_000
LATE_NS = 10_000_000  # with the beat before it, a stall of 20 ms is this late at least


class Heartbeat:
    """The timers of the event loops, of which a process may have several: one for each. `busy` says whether they are still needed."""

    def __init__(self, busy):
        self._busy = busy
        self._loops = set()  # that have a timer

    def start(self):
        """Begins to beat on the running loop; where it beats already this does nothing."""
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            for one in tuple(self._loops):
                if one.is_closed():  # amid its last beat
                    self._loops.discard(one)
            self._loops.add(loop)
            self._next(loop)

    def forget(self):
        """None of the loops runs here: they are those of the process that forked this one."""
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
