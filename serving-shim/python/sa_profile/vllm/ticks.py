"""When the kernel's clock last ticked. Its coarse clock changes with each tick, and keeps a constant distance from it."""

import time

MONOTONIC_COARSE = 6  # CLOCK_MONOTONIC_COARSE of linux/time.h
PER_GENERATION = 256


class Ticks:
    """Learns the distance: it is the least by which the coarse clock was ever seen behind, and so is near it after some looks.

    It drifts by some microseconds in an hour, so old looks are forgotten, a generation at a time.
    """

    def __init__(self):
        self.length_ns = round(time.clock_getres(MONOTONIC_COARSE) * 1e9)
        self._least = self._least_before = self.length_ns
        self._looks = 0
        self._wait_for_one()

    def last_ns(self):
        """When the last tick was, by the monotonic clock."""
        coarse_ns = time.clock_gettime_ns(MONOTONIC_COARSE)
        self._see(time.monotonic_ns() - coarse_ns)
        return coarse_ns + min(self._least, self._least_before)

    def _see(self, behind_ns):
        self._least = min(self._least, max(behind_ns, 0))
        self._looks += 1
        if self._looks % PER_GENERATION == 0:
            self._least_before, self._least = self._least, self.length_ns

    def _wait_for_one(self):
        """Spins until the next tick, 10 ms at most: the first requests are to be placed as well as the later ones."""
        until_ns = time.monotonic_ns() + 10_000_000
        began_ns = time.clock_gettime_ns(MONOTONIC_COARSE)
        while (now_ns := time.monotonic_ns()) < until_ns:
            coarse_ns = time.clock_gettime_ns(MONOTONIC_COARSE)
            if coarse_ns != began_ns:
                self._see(now_ns - coarse_ns)
                return
