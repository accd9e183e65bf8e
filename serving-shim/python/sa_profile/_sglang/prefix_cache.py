"""Reads the evictions of SGLang's prefix cache."""

from .._sa_profile import is_enabled
from .._engine.prefix_cache import PrefixCacheCounter
from .._hooks.instances import ObjectData, chain_class
from .._hooks.warnings import quietly

_caches = ObjectData()  # counters, by SGLang's caches


class PrefixCache(PrefixCacheCounter):
    """Counts the tokens of prompts that were looked up and found, and the tokens that were evicted."""

    def __init__(self, scheduler):
        super().__init__(evictions=0)
        quietly(self._observe, scheduler.tree_cache)

    def _observe(self, theirs):
        try:
            theirs.evictable_size()
        except NotImplementedError:  # a cache with several kinds of memory
            return
        _caches.set(theirs, self)
        for name in ("evict", "evict_for_alloc"):
            if callable(getattr(theirs, name, None)):
                chain_class(theirs, name, observe_evictions)


def observe_evictions(theirs, *_args, **_kwargs):
    """Observes the cache making room. What can still be evicted afterwards shows how much was evicted."""
    cache = _caches.get(id(theirs)) if is_enabled() else None
    before = None if cache is None else theirs.evictable_size()
    if not isinstance(before, int):
        return None
    return lambda _result, _error: cache.add("evictions", max(0, before - theirs.evictable_size()))
