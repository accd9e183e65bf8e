"""When the kernel last ticked, learned from its coarse clock while this thread works.

The coarse clock changes with each tick, and stands a constant distance before it that a correction of the clock moves by some
microseconds a second. A thread that sees it change between two looks, and ran all the time, has seen the distance from above.
"""

import time

MONOTONIC_COARSE = 6  # CLOCK_MONOTONIC_COARSE of linux/time.h
ENOUGH = 8  # changes seen before the least distance counts
FRESH_NS = 5_000_000_000  # how long distances are gathered; those of the stretch before it count too


def _coarse_ns():
    try:
        return time.clock_gettime_ns(MONOTONIC_COARSE)
    except OSError:  # a sandbox without this clock
        return 0


def _length_ns():
    try:
        return round(time.clock_getres(MONOTONIC_COARSE) * 1e9)
    except OSError:
        return 0


class Ticks:
    """What is known of the ticks. Both clocks are in ns."""

    def __init__(self, length_ns, coarse_ns=_coarse_ns, now_ns=time.monotonic_ns):
        self.length_ns = length_ns
        self.glance = coarse_ns  # to begin a stretch of work with
        self._now_ns = now_ns
        self._began_ns = now_ns()
        self._least, self._seen = length_ns, 0
        self._least_before, self._seen_before = length_ns, 0

    def worked(self, since):
        """A stretch of work ends that began with this glance."""
        coarse_ns = self.glance()
        if coarse_ns == since:
            return
        now_ns = self._now_ns()
        self._turn(now_ns)
        self._least = min(self._least, now_ns - coarse_ns)
        self._seen += 1

    def last_ns(self, coarse_ns, now_ns):
        """When the tick was at which this glance was the newest; `None` while that is not known. It was not after now, which the glance was not either."""
        self._turn(now_ns)
        if self._seen + self._seen_before < ENOUGH:
            return None
        return min(coarse_ns + min(self._least, self._least_before), now_ns)

    def _turn(self, now_ns):
        """Forgets what is not fresh."""
        age_ns = now_ns - self._began_ns
        if age_ns <= FRESH_NS:
            return
        kept = (self._least, self._seen) if age_ns <= 2 * FRESH_NS else (self.length_ns, 0)
        self._least_before, self._seen_before = kept
        self._least, self._seen, self._began_ns = self.length_ns, 0, now_ns


TICKS = Ticks(_length_ns())
