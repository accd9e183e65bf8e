"""Since when the event loop's thread may have been awake: data that came before that would have been read at once."""

from .._sa_profile import thread_counts

ALWAYS_NS = 1 << 62  # nothing is known of the time before


class Awake:
    """What is known of the stretch in which one thread has not slept. `counts` are the kernel's of the thread that asks."""

    def __init__(self, counts=thread_counts):
        self._counts = counts
        self._thread = None
        self._at_ns = self._slept = self._most_ns = 0

    def most_ns(self):
        """The longest that this thread may have been awake by now; `ALWAYS_NS` if nobody knows."""
        self.look()
        return self._most_ns

    def look(self):
        """Notes what the thread has used and waited for of a core. The more looks, the shorter the stretch."""
        try:
            thread, at_ns, slept = self._counts()
        except OSError:
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
