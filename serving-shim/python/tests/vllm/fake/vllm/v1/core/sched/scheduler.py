import enum
import hashlib
import time
from dataclasses import dataclass

from vllm.v1.core.sched.output import CachedRequestData, NewRequestData, SchedulerOutput
from vllm.v1.engine import EngineCoreEvent, EngineCoreEventType, EngineCoreOutput, EngineCoreOutputs, FinishReason, PrefillStats


@dataclass
class PrefixCacheStats:
    queries: int = 0
    hits: int = 0


@dataclass
class SchedulerStats:
    prefix_cache_stats: PrefixCacheStats


class RequestStatus(enum.IntEnum):
    FINISHED_ABORTED = 7


BLOCK_TOKENS = 4


def block_hashes(tokens):
    """Returns the hashes of full blocks. Each includes the hash of the block before it."""
    hashes, before = [], b"none"
    for end in range(BLOCK_TOKENS, len(tokens) + 1, BLOCK_TOKENS):
        before = hashlib.sha256(before + repr(tokens[end - BLOCK_TOKENS : end]).encode()).digest()
        hashes.append(before)
    return hashes


class Request:
    def __init__(self, request):
        self.request_id = request.request_id
        self.num_prompt_tokens = len(request.prompt_token_ids)
        self.max_tokens = request.max_tokens
        self.num_computed_tokens = 0
        self.num_output_tokens = 0
        self.events = []
        self.block_hashes = block_hashes(request.prompt_token_ids)

    def record_event(self, kind, timestamp=None):
        self.events.append(EngineCoreEvent(kind, time.monotonic() if timestamp is None else timestamp))


class BlockPool:
    """Returns one block for each request that starts. Every second block has cached contents to evict."""

    def __init__(self):
        self.given = 0
        self.cached_block_hash_to_block = {number: "block" for number in range(2, 100, 2)}

    def get_new_blocks(self, count):
        blocks = range(self.given + 1, self.given + 1 + count)
        self.given += count
        for block in blocks:
            self._maybe_evict_cached_block(block)
        return list(blocks)

    def evict_blocks(self, block_ids):
        for block in block_ids:
            self._maybe_evict_cached_block(block)

    def _maybe_evict_cached_block(self, block):
        return self.cached_block_hash_to_block.pop(block, None) is not None


class MambaManager:
    """Caches a state of each request, or evicts the block of an overwritten one."""

    def __init__(self, block_pool):
        self.block_pool = block_pool
        self._checkpoints = {}

    def cache_blocks(self, request_id):
        self._cache_partial_tail_block(request_id)

    def _cache_partial_tail_block(self, request_id):
        if request_id in self._checkpoints:
            self.block_pool._maybe_evict_cached_block(self._checkpoints[request_id])
            return None
        self.block_pool.cached_block_hash_to_block[request_id] = "block"
        return request_id


class Coordinator:
    def __init__(self, block_pool):
        self.single_type_managers = (MambaManager(block_pool),)


class KVCacheManager:
    def __init__(self):
        self.block_pool = BlockPool()
        self.coordinator = Coordinator(self.block_pool)
        self.prefix_cache_stats = PrefixCacheStats()

    @property
    def usage(self):
        return self.block_pool.given / 100

    def free(self, request):
        """Frees the blocks of a request that is preempted or finished."""

    def make_prefix_cache_stats(self):
        stats, self.prefix_cache_stats = self.prefix_cache_stats, PrefixCacheStats()
        return stats


class Scheduler:
    """Schedules all requests at once. `cached` tokens of each prompt count as computed. Requests whose ids are in `preempt` are preempted once."""

    def __init__(self, cached=0, drafts=0, log_stats=True):
        self.requests, self.running, self.waiting = {}, [], []
        self.cached, self.drafts, self.log_stats = cached, drafts, log_stats
        self.block_size = self.hash_block_size = BLOCK_TOKENS
        self.preempt, self.preempted = set(), set()
        self.kv_cache_manager = KVCacheManager()

    def add_request(self, request):
        self.requests[request.request_id] = request
        self.waiting.append(request)
        if self.log_stats:
            request.record_event(EngineCoreEventType.QUEUED)

    def has_requests(self):
        return bool(self.requests)

    def get_request_counts(self):
        return len(self.running), len(self.waiting)

    def get_kv_cache_usage(self):
        return len(self.running) / 100

    def schedule(self, throttle_prefills=False):
        put_off = [request for request in self.running if request.request_id in self.preempt]
        for request in put_off:
            self.preempt.discard(request.request_id)
            self.preempted.add(request.request_id)
            self.running.remove(request)
            self.kv_cache_manager.free(request)
            request.num_computed_tokens = 0
        new, cached, tokens = [], CachedRequestData(), {}
        scheduled_timestamp = time.monotonic()
        for request in self.waiting if self.log_stats else ():
            request.record_event(EngineCoreEventType.SCHEDULED, scheduled_timestamp)
        for request in self.running:
            self._again(cached, tokens, request, 1 + self._drafted(request))
        for request in list(self.waiting):
            self._begin(new, cached, tokens, request)
        self.waiting.extend(put_off)
        output = SchedulerOutput(new, cached, tokens, sum(tokens.values()))
        output.scheduled_spec_decode_tokens = {
            request.request_id: [7] * self.drafts for request in self.running if self._drafted(request)
        }
        output.preempted_req_ids = {request.request_id for request in put_off}
        return output

    def _drafted(self, request):
        return self.drafts if request.num_output_tokens else 0

    def _again(self, cached, tokens, request, count):
        cached.req_ids.append(request.request_id)
        cached.num_computed_tokens.append(request.num_computed_tokens)
        cached.num_output_tokens.append(request.num_output_tokens)
        tokens[request.request_id] = count
        request.num_computed_tokens += count

    def _begin(self, new, cached, tokens, request):
        self.waiting.remove(request)
        self.running.append(request)
        if request.request_id in self.preempted:
            self.preempted.discard(request.request_id)
            cached.resumed_req_ids.add(request.request_id)
            self._again(cached, tokens, request, request.num_prompt_tokens + request.num_output_tokens)
            return
        request.num_computed_tokens = self.cached
        self.kv_cache_manager.block_pool.get_new_blocks(1)
        self.kv_cache_manager.prefix_cache_stats.queries += request.num_prompt_tokens
        self.kv_cache_manager.prefix_cache_stats.hits += self.cached
        new.append(NewRequestData(request.request_id, self.cached))
        tokens[request.request_id] = request.num_prompt_tokens - self.cached
        request.num_computed_tokens = request.num_prompt_tokens

    def update_from_output(self, scheduler_output, model_runner_output):
        outputs = []
        for request_id in scheduler_output.num_scheduled_tokens:
            request = self.requests.get(request_id)
            if request is None:
                continue
            sampled = model_runner_output.sampled_token_ids[model_runner_output.req_id_to_index[request_id]]
            stats = None if request.num_output_tokens else PrefillStats(self.cached)
            request.num_output_tokens += len(sampled)
            reason = FinishReason.LENGTH if request.num_output_tokens >= request.max_tokens else None
            outputs.append(EngineCoreOutput(request_id, sampled, reason, stats))
            if reason is not None:
                self.kv_cache_manager.free(request)
                del self.requests[request_id]
                self.running.remove(request)
        if not outputs:
            return {}
        stats = SchedulerStats(self.kv_cache_manager.make_prefix_cache_stats()) if self.log_stats else None
        return {0: EngineCoreOutputs(outputs, stats)}

    def finish_requests(self, request_ids, finished_status):
        ids = list(self.requests) if request_ids is None else [request_ids] if isinstance(request_ids, str) else request_ids
        found = [self.requests.pop(one) for one in list(ids) if one in self.requests]
        self.running = [one for one in self.running if one not in found]
        self.waiting = [one for one in self.waiting if one not in found]
        return found
