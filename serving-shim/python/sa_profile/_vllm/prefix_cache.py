"""Reads the counts of vLLM's prefix cache: tokens that were looked up and found, and evicted hashes."""

import weakref

from .._sa_profile import is_enabled
from .._engine.prefix_cache import PrefixCacheCounter
from .._hooks.chain import chain_if_there

# By block pool. The pool's class is hooked: a further attribute of a pool would make Python use a slower lookup for all of its attributes, for each block.
_caches = weakref.WeakKeyDictionary()


class PrefixCache(PrefixCacheCounter):
    """Queries and hits are vLLM's own counts, which its metrics use too."""

    def __init__(self, scheduler):
        super().__init__()
        pool = getattr(getattr(scheduler, "kv_cache_manager", None), "block_pool", None)
        if hasattr(getattr(pool, "cached_block_hash_to_block", None), "__len__"):
            self.counts["evictions"] = 0
            _caches[pool] = self
            for name in ("get_new_blocks", "evict_blocks"):
                chain_if_there(type(pool), name, observe_evictions)
            for manager in _managers(scheduler):
                if hasattr(manager, "_checkpoints"):
                    chain_if_there(type(manager), "_cache_partial_tail_block", observe_checkpoint)

    def count(self, groups):
        """Adds the counts in a step's outputs, and records the counter if it has changed."""
        for group in groups:
            stats = getattr(getattr(group, "scheduler_stats", None), "prefix_cache_stats", None)
            if stats is not None and (stats.queries or stats.hits):
                self.add("queries", stats.queries)
                self.add("hits", stats.hits)
        self.record()


def observe_evictions(pool, *_args, **_kwargs):
    """Observes blocks being allocated, all that a request needs at once. Nothing is added to the cache meanwhile, so its length shows the evictions."""
    cache = _caches.get(pool) if is_enabled() else None
    if cache is None:
        return None
    before = len(pool.cached_block_hash_to_block)

    def leave(_result, _error):
        cache.add("evictions", before - len(pool.cached_block_hash_to_block))

    return leave


def observe_checkpoint(manager, *_args, **_kwargs):
    """Observes Mamba's manager, which caches a request's current state, or evicts an overwritten one without calling the pool's functions."""
    evicted = observe_evictions(manager.block_pool)
    return evicted and (lambda result, error: evicted(result, error) if result is None else None)


def _managers(scheduler):
    coordinator = getattr(getattr(scheduler, "kv_cache_manager", None), "coordinator", None)
    return getattr(coordinator, "single_type_managers", ())
