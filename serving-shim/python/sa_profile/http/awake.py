"""Since when the event loop's thread may have been awake: data that came before that would have been read at once."""

import os
import resource
import threading
import time

ALWAYS_NS = 1 << 62  # nothing is known of the time before


def _delayed_ns():
    """How long this thread has waited for a core, so far. Raises `OSError` or `ValueError` where the kernel does not tell.

    The file is closed each time: kept, it would be one for each thread that ever asks, and the host may close it and use its number.
    """
    file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
    try:
        _used, delayed, *_ = os.read(file, 100).split()
    finally:
        os.close(file)
    return int(delayed)


def _sleeps():
    """How often this thread has waited for something, so far."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


class Awake:
    """What is known of the stretch in which one thread has not slept."""

    def __init__(self, used_ns=time.thread_time_ns, delayed_ns=_delayed_ns, sleeps=_sleeps):
        self._used_ns = used_ns
        self._delayed_ns = delayed_ns
        self._sleeps = sleeps
        self._thread = None
        self._at_ns = self._slept = self._most_ns = 0

    def most_ns(self):
        """The longest that this thread may have been awake by now; `ALWAYS_NS` if nobody knows."""
        self.look()
        return self._most_ns

    def look(self):
        """Notes what the thread has used and waited for of a core. The more looks, the shorter the stretch."""
        thread = threading.get_native_id()
        try:
            at_ns, slept = self._used_ns() + self._delayed_ns(), self._sleeps()
        except (OSError, ValueError):
            self._thread, self._most_ns = None, ALWAYS_NS
            return
        since_ns = at_ns - self._at_ns
        if thread != self._thread:
            self._most_ns = ALWAYS_NS
        elif slept != self._slept:
            self._most_ns = since_ns  # the stretch began after the last look
        else:
            self._most_ns = min(self._most_ns + since_ns, ALWAYS_NS)
        self._thread, self._at_ns, self._slept = thread, at_ns, slept


AWAKE = Awake()
