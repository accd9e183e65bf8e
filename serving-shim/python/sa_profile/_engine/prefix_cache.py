"""The prefix cache of one engine as a counter: tokens that were looked up and found, and evictions."""

from .. import counter


class PrefixCacheCounter:
    """Counts while recording is on."""

    def __init__(self, **counts):
        self.counts = dict(queries=0, hits=0, **counts)
        self._has_changed = False  # since the counter was last recorded

    def add(self, name, count):
        """Adds to one of the counts."""
        if count:
            self.counts[name] += count
            self._has_changed = True

    def record(self):
        """Records the counter if it has changed."""
        if self._has_changed:
            self._has_changed = False
            counter("prefix_cache", **self.counts)
