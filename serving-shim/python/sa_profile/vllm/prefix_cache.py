"""The prefix cache of one engine as a counter: tokens it was asked for and had, and blocks whose contents it gave up."""

from .. import counter
from ..hooks.chain import chain_if_there, handing_on


class PrefixCache:
    """Its counts since recording began; those of queries and hits are vLLM's own, of which its metrics are made."""

    def __init__(self, scheduler):
        self._queries = self._hits = self._evictions = 0
        self._told = None
        pool = getattr(getattr(scheduler, "kv_cache_manager", None), "block_pool", None)
        chain_if_there(pool, "_maybe_evict_cached_block", self._evicted, handing_on)

    def _evicted(self, is_evicted):
        if is_evicted:
            self._evictions += 1

    def count(self, groups):
        """Adds what the outputs of a step say of it, and tells the counts if they are others."""
        for group in groups:
            stats = getattr(getattr(group, "scheduler_stats", None), "prefix_cache_stats", None)
            if stats is not None:
                self._queries += stats.queries
                self._hits += stats.hits
        counts = dict(queries=self._queries, hits=self._hits, evictions=self._evictions)
        if counts != self._told and any(counts.values()):
            counter("prefix_cache", **counts)
            self._told = counts
