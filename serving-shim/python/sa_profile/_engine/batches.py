"""The batches that an engine has launched and whose results it has not processed yet."""

MAX_IN_FLIGHT = 64  # more than any pipeline has; if there are more, an error lost the oldest one


class Batches:
    """Batches in flight, each under an object that the engine has both at its launch and with its result."""

    def __init__(self):
        self._in_flight = {}

    def add(self, owner, step):
        """Adds a batch under its object, which stays alive until the batch comes back, because its address identifies the batch."""
        self._lose(id(owner))
        if len(self._in_flight) >= MAX_IN_FLIGHT:
            self._lose(next(iter(self._in_flight)))
        self._in_flight[id(owner)] = owner, step

    def _lose(self, key):
        _, step = self._in_flight.pop(key, (None, None))
        if step is not None:
            step.end(lost=True)

    def get(self, owner):
        """Returns the batch of this object, or `None` if the batch is empty or was launched while recording was off."""
        return self._in_flight.get(id(owner), (None, None))[1]

    def remove(self, owner):
        """Ends and returns the batch of this object, which has come back, or returns `None` as `get` does."""
        _, step = self._in_flight.pop(id(owner), (None, None))
        if step is not None:
            step.end()
        return step

    def fail(self, error):
        """Ends all batches, because none of them will come back."""
        for _, step in self._in_flight.values():
            step.end(error=type(error).__name__)
        self._in_flight.clear()
