"""When the kernel last ticked, learned from its coarse clock while this thread works.

The coarse clock changes with each tick, and stands a constant distance before it that a correction of the clock moves by some
microseconds a second. A thread that sees it change between two looks, and ran all the time, has seen the distance from above.
"""

import time

MONOTONIC_COARSE = 6  # CLOCK_MONOTONIC_COARSE of linux/time.h
ENOUGH = 8  # changes seen, of which the least distance counts
FRESH_NS = 10_000_000_000
SLACK_NS = 250_000  # by which the distance may be taken for too long


def glance():
    """The coarse clock, to begin a stretch of work with."""
    return time.clock_gettime_ns(MONOTONIC_COARSE)


class Ticks:
    """What is known of the ticks."""

    def __init__(self):
        self.length_ns = round(time.clock_getres(MONOTONIC_COARSE) * 1e9)
        self._seen = []  # when a change was seen, and the distance then

    def worked(self, since):
        """A stretch of work ends that began with this glance."""
        coarse_ns = time.clock_gettime_ns(MONOTONIC_COARSE)
        if coarse_ns == since:
            return
        now_ns = time.monotonic_ns()
        self._seen.append((now_ns, now_ns - coarse_ns))
        del self._seen[:-ENOUGH]

    def last_ns(self, now_ns):
        """When the last tick before now was; `None` while that is not known."""
        if len(self._seen) < ENOUGH or now_ns - self._seen[0][0] > FRESH_NS:
            return None
        tick_ns = time.clock_gettime_ns(MONOTONIC_COARSE) + min(distance for _, distance in self._seen)
        # A core that wakes from its sleep brings the coarse clock up to date between two ticks.
        return min(tick_ns, now_ns) if tick_ns <= now_ns + SLACK_NS else tick_ns - self.length_ns


TICKS = Ticks()
