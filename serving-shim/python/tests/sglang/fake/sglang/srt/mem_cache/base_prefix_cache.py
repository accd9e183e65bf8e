from dataclasses import dataclass


@dataclass
class EvictParams:
    num_tokens: int = 0
    swa_num_tokens: int = 0
    mamba_num: int = 0


@dataclass
class EvictResult:
    num_tokens_evicted: int = 0
    swa_num_tokens_evicted: int = 0
    mamba_num_evicted: int = 0


class BasePrefixCache:
    """Keeps the tokens of finished requests until they are evicted. `device`, `host` and `storage` are the cached tokens of each prompt, by where they are."""

    def __init__(self):
        self.size = 0
        self.device = self.host = self.storage = 0

    def evictable_size(self):
        return self.size

    def _remove(self, params):
        count = min(params.num_tokens, self.size)
        self.size -= count
        return EvictResult(num_tokens_evicted=count)
