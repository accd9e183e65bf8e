"""How long the event loop's thread has not slept since it was last asked: data that came earlier would have been read at once."""

import threading
import time

ALWAYS_NS = 1 << 62  # nothing is known of the time before


def _delayed_ns():
    """How long this thread has waited for a core, so far; 0 where the kernel does not count that."""
    try:
        with open("/proc/thread-self/schedstat", "rb") as file:
            return int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return 0


class Awake:
    """What one thread has used and waited for of a core, at its last look."""

    def __init__(self, used_ns=time.thread_time_ns, delayed_ns=_delayed_ns):
        self._used_ns = used_ns
        self._delayed_ns = delayed_ns
        self._thread = None
        self._at_ns = 0

    def look_ns(self):
        """CPU time and waiting of this thread since the last look; `ALWAYS_NS` if that was another thread's."""
        at_ns = self._used_ns() + self._delayed_ns()
        thread = threading.get_native_id()
        since_ns = at_ns - self._at_ns if thread == self._thread else ALWAYS_NS
        self._thread, self._at_ns = thread, at_ns
        return since_ns


AWAKE = Awake()
