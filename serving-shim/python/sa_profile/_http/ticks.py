"""When the kernel last ticked, learned from its coarse clock while this thread works.

The coarse clock changes with each tick, and stands a constant distance before it that a correction of the clock moves by some
microseconds a second. A thread that sees it change between two looks, and ran all the time, has seen the distance from above.

Ticks may come late, as on a virtual machine that has lost a core: then the clock is seen older than a tick is long.
"""

import time

MONOTONIC_COARSE = 6  # CLOCK_MONOTONIC_COARSE of linux/time.h
ENOUGH = 8  # changes seen before the least distance counts
PUNCTUAL = 16  # a tick that is late by less than this part of one is in time
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
        self._least, self._oldest, self._seen = length_ns, 0, 0
        self._least_before, self._oldest_before, self._seen_before = length_ns, 0, 0
        self._ages = self._looks = 0

    def worked(self, since):
        """A stretch of work ends that began with this glance."""
        coarse_ns, now_ns = self.glance(), self._now_ns()
        self._turn(now_ns)
        if coarse_ns != since:
            self._least = min(self._least, now_ns - coarse_ns)
            self._seen += 1
        self.was_newest(coarse_ns, now_ns)

    def was_newest(self, coarse_ns, now_ns):
        """Nothing newer than this glance was to be seen then, if it still is not."""
        if self.glance() == coarse_ns:
            self._oldest = max(self._oldest, now_ns - coarse_ns)
            self._ages += now_ns - coarse_ns
            self._looks += 1

    def lag_ns(self):
        """How late ticks are in the mean: by so much the clock was older, in the mean, than half a tick. 0 where none was seen to be late."""
        if self.late_ns() < self.length_ns or self._looks < ENOUGH:
            return 0
        return max(self._ages // self._looks - min(self._least, self._least_before) - self.length_ns // 2, 0)

    def late_ns(self):
        """How late ticks may be. All are late by a little. Where some were seen to be later, others may be so by more, which nobody has seen: by a tick beyond the next whole one."""
        seen_ns = max(self._oldest, self._oldest_before) - min(self._least, self._least_before) - self.length_ns
        little_ns = self.length_ns // PUNCTUAL
        return little_ns + ((1 - -seen_ns // self.length_ns) * self.length_ns if seen_ns > little_ns else 0)

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
        kept = (self._least, self._oldest, self._seen) if age_ns <= 2 * FRESH_NS else (self.length_ns, 0, 0)
        self._least_before, self._oldest_before, self._seen_before = kept
        self._least, self._oldest, self._seen, self._began_ns = self.length_ns, 0, 0, now_ns
        is_fresh = age_ns <= 2 * FRESH_NS
        self._ages, self._looks = (self._ages // 2, self._looks // 2) if is_fresh else (0, 0)


TICKS = Ticks(_length_ns())
