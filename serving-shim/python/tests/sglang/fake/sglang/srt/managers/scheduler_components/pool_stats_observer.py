from dataclasses import dataclass


@dataclass
class PoolStats:
    full_num_used: int
    full_token_usage: float
    full_available_size: int
    full_evictable_size: int

    def get_kv_token_stats(self):
        return self.full_num_used, self.full_token_usage

    def get_max_pool_usage(self):
        return self.full_token_usage


@dataclass(kw_only=True, slots=True, frozen=True)
class SchedulerPoolStatsObserver:
    token_to_kv_pool_allocator: object
    tree_cache: object
    max_total_num_tokens: int

    def get_pool_stats(self):
        return self._get_token_info()

    def _get_token_info(self):
        available, evictable = self.token_to_kv_pool_allocator.available_size(), self.tree_cache.evictable_size()
        used = self.max_total_num_tokens - available - evictable
        return PoolStats(used, used / self.max_total_num_tokens, available, evictable)
