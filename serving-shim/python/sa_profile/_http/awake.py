"""Since when the event loop's thread may have been awake: data that came before that would have been read at once."""

from .._sa_profile import thread_counts, thread_sleeps

ALWAYS_NS = 1 << 62  # nothing is known of the time before


class Awake:
    """What is known of the stretch in which one thread has not slept. `counts` and `sleeps` are the kernel's of the thread that asks."""

    def __init__(self, counts=thread_counts, sleeps=thread_sleeps):
        self._counts = counts
        self._sleeps = sleeps
        self._thread = None
        self._at_ns = self._slept = self._most_ns = 0

    def most_ns(self):
        """The longest that this thread may have been awake by now; `ALWAYS_NS` if nobody knows. A stretch may have begun as early as the last look before it: the more, the shorter."""
        try:
            thread, at_ns, slept = self._counts()
        except OSError:
            self._thread, self._most_ns = None, ALWAYS_NS
            return ALWAYS_NS
        since_ns = at_ns - self._at_ns
        if thread != self._thread:
            self._most_ns = ALWAYS_NS
        elif slept != self._slept:
            self._most_ns = since_ns  # the stretch began after the last look
        else:
            self._most_ns = min(self._most_ns + since_ns, ALWAYS_NS)
        self._thread, self._at_ns, self._slept = thread, at_ns, slept
        return self._most_ns

    def look(self):
        """The same for less, where nobody asks how long: begins a new stretch if the thread has slept. One that goes on has no new look, so that the next one begins with it."""
        try:
            is_same = self._sleeps() == (self._thread, self._slept)
        except OSError:
            is_same = False
        if not is_same:
            self.most_ns()


AWAKE = Awake()
