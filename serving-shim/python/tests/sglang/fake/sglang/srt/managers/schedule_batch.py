from array import array
from dataclasses import dataclass
from http import HTTPStatus

from sglang.srt.disaggregation.utils import DisaggregationMode
from sglang.srt.mem_cache.base_prefix_cache import EvictParams
from sglang.srt.model_executor.forward_batch_info import ForwardMode
from sglang.srt.model_executor.model_runner import STOP_TOKEN
from sglang.srt.observability.req_time_stats import SchedulerReqTimeStats


class BaseFinishReason:
    def to_json(self):
        raise NotImplementedError


class FINISH_MATCHED_TOKEN(BaseFinishReason):
    def __init__(self, matched):
        self.matched = matched

    def to_json(self):
        return {"type": "stop", "matched": self.matched}


class FINISH_LENGTH(BaseFinishReason):
    def __init__(self, length):
        self.length = length

    def to_json(self):
        return {"type": "length", "length": self.length}


class FINISH_ABORT(BaseFinishReason):
    def __init__(self, message=None, status_code=None, err_type=None):
        self.message, self.status_code, self.err_type = message or "Aborted", status_code, err_type

    def to_json(self):
        return {"type": "abort", "message": self.message, "status_code": self.status_code, "err_type": self.err_type}


class Req:
    def __init__(
        self, rid, origin_input_text, origin_input_ids, sampling_params, stream=False, lora_id=None, bootstrap_room=None,
        disagg_mode=None, routed_dp_rank=None, vocab_size=None, priority=None, metrics_collector=None, http_worker_ipc=None, time_stats=None,
    ):  # fmt: skip
        self.rid, self.origin_input_text = rid, origin_input_text
        self.origin_input_ids = self.origin_input_ids_unpadded = origin_input_ids
        self.output_ids = array("q")
        self.sampling_params, self.stream, self.lora_id, self.priority = sampling_params, stream, lora_id, priority
        self.http_worker_ipc, self.bootstrap_room, self.routed_dp_rank = http_worker_ipc, bootstrap_room, routed_dp_rank
        self.vocab_size, self.tokenizer = vocab_size, None
        self.extend_end, self.prefix_len = None, 0
        self.extend_batch_idx = self.decode_batch_idx = 0
        self.finished_reason = self.finished_len = self.finished_output = self.to_finish = None
        self.decoded_text, self.read_offset = "", None
        self.host_hit_length = self.storage_hit_length = 0
        self.inflight_middle_chunks = 0
        self.is_retracted = self.retracted_stain = False
        self.retraction_count = 0
        self.send_token_offset = self.send_decode_id_offset = 0
        self.return_logprob = False
        self.grammar, self.grammar_key = None, None
        self.reasoning_tokens = 0
        self.cached_tokens = self.already_computed = 0
        self.cached_tokens_device = self.cached_tokens_host = self.cached_tokens_storage = 0
        self._cache_breakdown_computed = False
        self.spec_verify_ct = self.spec_num_correct_drafts = 0
        self.metrics_collector = metrics_collector
        if time_stats is not None:
            self.time_stats = SchedulerReqTimeStats.new_from_obj(time_stats)
        else:
            self.time_stats = SchedulerReqTimeStats(disagg_mode=disagg_mode or DisaggregationMode.NULL)
        self.time_stats.set_metrics_collector(metrics_collector)
        self.time_stats.set_scheduler_recv_time()
        self.kv_tokens = 0  # tokens that this request holds in the KV pool

    @property
    def seqlen(self):
        return len(self.origin_input_ids) + len(self.output_ids)

    @property
    def extend_len(self):
        return self.extend_end - self.prefix_len

    @property
    def output_ids_through_stop(self):
        return self.output_ids if self.finished_len is None else self.output_ids[: self.finished_len]

    def finished(self):
        return self.finished_reason is not None

    def next_output_finishes_by_length(self):
        return len(self.output_ids) + 1 >= self.sampling_params.max_new_tokens

    def init_next_round_input(self, tree_cache=None, cow_mamba=None):
        """Matches the prefix of a request that waits, or the computed tokens of one whose prefill continues."""
        if tree_cache is None:
            self.prefix_len = self.extend_end
            return
        cached = tree_cache.device + tree_cache.host + tree_cache.storage
        self.prefix_len = min(cached, self.seqlen - 1)
        self.host_hit_length = min(tree_cache.host + tree_cache.storage, self.prefix_len)
        self.storage_hit_length = min(tree_cache.storage, self.host_hit_length)

    def init_incremental_detokenize(self):
        if self.read_offset is None:
            self.read_offset = 0
        return self.output_ids_through_stop, self.read_offset

    def update_finish_state(self, new_accepted_len=1):
        if self.finished():
            return
        if self.to_finish:
            self.finished_reason, self.to_finish = self.to_finish, None
            return
        if new_accepted_len and self.output_ids[-1] == STOP_TOKEN:
            self.finished_reason = FINISH_MATCHED_TOKEN(matched=STOP_TOKEN)
        elif len(self.output_ids) >= self.sampling_params.max_new_tokens:
            self.finished_reason = FINISH_LENGTH(length=self.sampling_params.max_new_tokens)
            self.finished_len = self.sampling_params.max_new_tokens

    def set_finish_with_abort(self, error_msg, status_code=HTTPStatus.BAD_REQUEST, err_type="BadRequestError"):
        self.to_finish = FINISH_ABORT(error_msg, status_code, err_type)
        self.origin_input_ids = self.origin_input_ids[:1]

    def reset_for_retract(self):
        self.retraction_count += 1
        self.prefix_len, self.extend_end = 0, None
        self.is_retracted = self.retracted_stain = True
        self.inflight_middle_chunks = self.already_computed = 0
        self.extend_batch_idx = 0
        self.kv_tokens = 0


class TokenToKVPoolAllocator:
    """Counts the free tokens of the KV pool."""

    def __init__(self, size):
        self.size = self.free_tokens = size

    def available_size(self):
        return self.free_tokens

    def alloc(self, req, count):
        self.free_tokens -= count
        req.kv_tokens += count


@dataclass
class ScheduleBatch:
    reqs: list
    token_to_kv_pool_allocator: TokenToKVPoolAllocator = None
    tree_cache: object = None
    enable_overlap: bool = False
    batch_is_full: bool = False
    chunked_req: Req | None = None
    decoding_reqs: list = None
    prefill_stats: object = None
    forward_iter: int | None = None
    launch_ts: float | None = None
    after_idle_gap: bool = False
    forward_mode: ForwardMode = None
    is_extend_in_batch: bool = False
    return_logprob: bool = False
    is_prefill_only: bool = False
    spec_algorithm: object = None
    extend_num_tokens: int | None = None
    dp_cooperation_info: object = None
    prefix_lens: list = None
    extend_lens: list = None
    global_num_tokens: list | None = None
    has_grammar: bool = False

    @classmethod
    def init_new(
        cls, reqs, req_to_token_pool, token_to_kv_pool_allocator, tree_cache, model_config, enable_overlap, spec_algorithm,
        chunked_req=None, dllm_config=None,
    ):  # fmt: skip
        return cls(
            reqs=reqs, token_to_kv_pool_allocator=token_to_kv_pool_allocator, tree_cache=tree_cache,
            enable_overlap=enable_overlap, spec_algorithm=spec_algorithm, chunked_req=chunked_req,
            has_grammar=any(req.grammar for req in reqs),
        )  # fmt: skip

    def batch_size(self):
        return len(self.reqs)

    def is_empty(self):
        return len(self.reqs) == 0

    def prepare_for_extend(self):
        self.forward_mode = ForwardMode.EXTEND
        self.prefix_lens = [req.prefix_len for req in self.reqs]
        self.extend_lens = [req.extend_len for req in self.reqs]
        self.extend_num_tokens = sum(self.extend_lens)
        for req in self.reqs:
            req.extend_batch_idx += 1
            self._has_room(req.extend_end - req.kv_tokens)
            self.token_to_kv_pool_allocator.alloc(req, req.extend_end - req.kv_tokens)
            if not req.retracted_stain:
                req.cached_tokens += req.prefix_len - req.already_computed
                if not req._cache_breakdown_computed:
                    req.cached_tokens_device = req.prefix_len - req.host_hit_length
                    req.cached_tokens_host = req.host_hit_length - req.storage_hit_length
                    req.cached_tokens_storage = req.storage_hit_length
                    req._cache_breakdown_computed = True
                req.already_computed = req.extend_end
            req.is_retracted = False

    def prepare_for_decode(self):
        self.forward_mode = ForwardMode.DECODE
        self.extend_num_tokens = None
        for req in self.reqs:
            req.decode_batch_idx += 1
            self.token_to_kv_pool_allocator.alloc(req, 1)

    def prepare_for_idle(self):
        self.forward_mode = ForwardMode.IDLE
        self.extend_num_tokens = 0

    def mix_with_running(self, running_batch):
        self.forward_mode = ForwardMode.MIXED
        count = running_batch.batch_size()
        self.prefix_lens = self.prefix_lens + [req.seqlen - 1 for req in running_batch.reqs]
        self.extend_lens = self.extend_lens + [1] * count
        self.extend_num_tokens += count
        self.merge_batch(running_batch)

    def check_decode_mem(self, selected_indices=None):
        return self._has_room(len(self.reqs) if selected_indices is None else len(selected_indices))

    def _has_room(self, count):
        """Returns true if the pool has room for this many tokens, after an eviction if one helps."""
        allocator = self.token_to_kv_pool_allocator
        if allocator.free_tokens < count:
            result = self.tree_cache.evict(EvictParams(num_tokens=count - allocator.free_tokens))
            allocator.free_tokens += result.num_tokens_evicted
        return allocator.free_tokens >= count

    def retract_decode(self):
        kept, retracted = list(range(len(self.reqs))), []
        while len(kept) > 1 and (not retracted or not self.check_decode_mem(kept)):
            idx = kept.pop()
            retracted.append(self.reqs[idx])
            self.release_req(idx, len(kept))
        self.filter_batch(keep_indices=kept)
        return retracted, 0.7, []

    def release_req(self, idx, remaing_req_count, offload_kv=True):
        self.token_to_kv_pool_allocator.free_tokens += self.reqs[idx].kv_tokens
        self.reqs[idx].reset_for_retract()
        return True

    def filter_batch(self, reqs_to_exclude=None, keep_indices=None):
        if keep_indices is None:
            if isinstance(reqs_to_exclude, Req):
                reqs_to_exclude = [reqs_to_exclude]
            excluded = reqs_to_exclude or ()
            keep_indices = [i for i, req in enumerate(self.reqs) if req.finished_reason is None and req not in excluded]
        if len(keep_indices) != len(self.reqs):
            self.reqs = [self.reqs[i] for i in keep_indices]

    def merge_batch(self, other):
        self.reqs = self.reqs + other.reqs

    def copy(self):
        return ScheduleBatch(
            reqs=self.reqs[:],
            extend_lens=self.extend_lens,
            prefix_lens=self.prefix_lens,
            forward_mode=self.forward_mode,
            return_logprob=self.return_logprob,
            has_grammar=self.has_grammar,
            decoding_reqs=self.decoding_reqs,
            spec_algorithm=self.spec_algorithm,
            global_num_tokens=self.global_num_tokens,
            is_extend_in_batch=self.is_extend_in_batch,
            is_prefill_only=self.is_prefill_only,
            enable_overlap=self.enable_overlap,
            dp_cooperation_info=self.dp_cooperation_info,
            prefill_stats=self.prefill_stats,
            forward_iter=self.forward_iter,
            launch_ts=self.launch_ts,
            after_idle_gap=self.after_idle_gap,
            extend_num_tokens=self.extend_num_tokens,
        )


@dataclass(slots=True)
class NextBatchPlan:
    batch_to_run: ScheduleBatch | None
    running_batch: ScheduleBatch
