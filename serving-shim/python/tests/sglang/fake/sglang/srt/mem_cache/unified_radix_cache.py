from sglang.srt.mem_cache.base_prefix_cache import BasePrefixCache


class UnifiedRadixCache(BasePrefixCache):
    def evict(self, params):
        return self._evict(params)

    def _evict(self, params, available_size_targets=None, *, allocation_reclaim_satisfied=None):
        return self._remove(params)
