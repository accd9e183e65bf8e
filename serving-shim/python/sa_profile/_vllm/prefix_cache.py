"""The prefix cache of one engine as a counter: tokens it was asked for and had, and cached hashes that it gave up."""

import weakref

from .. import counter
from .._sa_profile import is_enabled
from .._hooks.chain import chain_if_there

# By their pools of blocks. The pools' class is hooked: an attribute more of a pool makes Python look all of its attributes up in a slower way, for each block.
_caches = weakref.WeakKeyDictionary()


class PrefixCache:
    """Its counts while recording was on; those of queries and hits are vLLM's own, of which its metrics are made."""

    def __init__(self, scheduler):
        self.counts = dict(queries=0, hits=0)
        self._has_changed = False  # since it was told
        pool = getattr(getattr(scheduler, "kv_cache_manager", None), "block_pool", None)
        if hasattr(getattr(pool, "cached_block_hash_to_block", None), "__len__"):
            self.counts["evictions"] = 0
            _caches[pool] = self
            for name in ("get_new_blocks", "evict_blocks"):
                chain_if_there(type(pool), name, giving_up)
            for manager in _managers(scheduler):
                if hasattr(manager, "_checkpoints"):
                    chain_if_there(type(manager), "_cache_partial_tail_block", giving_up_checkpoint)

    def count(self, groups):
        """Adds what the outputs of a step say of it, and tells the counts if they are others."""
        for group in groups:
            stats = getattr(getattr(group, "scheduler_stats", None), "prefix_cache_stats", None)
            if stats is not None and (stats.queries or stats.hits):
                self.add("queries", stats.queries)
                self.add("hits", stats.hits)
        if self._has_changed:
            self._has_changed = False
            counter("prefix_cache", **self.counts)

    def add(self, name, count):
        """Adds to one of them."""
        if count:
            self.counts[name] += count
            self._has_changed = True


def giving_up(pool, *_args, **_kwargs):
    """Blocks are taken, all that a request needs at once. Meanwhile nothing is added to what is cached."""
    cache = _caches.get(pool) if is_enabled() else None
    if cache is None:
        return None
    before = len(pool.cached_block_hash_to_block)

    def leave(_result, _error):
        cache.add("evictions", before - len(pool.cached_block_hash_to_block))

    return leave


def giving_up_checkpoint(manager, *_args, **_kwargs):
    """Mamba's manager caches the state that a request has reached, or, past the pool's functions, gives up one that was overwritten."""
    evicted = giving_up(manager.block_pool)
    return evicted and (lambda result, error: evicted(result, error) if result is None else None)


def _managers(scheduler):
    coordinator = getattr(getattr(scheduler, "kv_cache_manager", None), "coordinator", None)
    return getattr(coordinator, "single_type_managers", ())
