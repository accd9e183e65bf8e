from sglang.srt.mem_cache.base_prefix_cache import BasePrefixCache


class RadixCache(BasePrefixCache):
    def evict(self, params):
        return self._remove(params)
