import os
import time
from collections import deque

import setproctitle
from sglang.fake_sockets import get_socket
from sglang.srt.constrained.grammar_manager import GrammarManager
from sglang.srt.disaggregation.utils import DisaggregationMode
from sglang.srt.managers.io_struct import AbortReq, BatchTokenizedGenerateReqInput, ProfileReq, TokenizedGenerateReqInput
from sglang.srt.managers.schedule_batch import FINISH_ABORT, NextBatchPlan, Req, ScheduleBatch, TokenToKVPoolAllocator
from sglang.srt.managers.scheduler_components.batch_result_processor import SchedulerBatchResultProcessor
from sglang.srt.managers.scheduler_components.dp_attn import SchedulerDPAttnAdapter
from sglang.srt.managers.scheduler_components.metrics_reporter import PrefillStats, SchedulerMetricsReporter
from sglang.srt.managers.scheduler_components.output_sender import SenderWrapper
from sglang.srt.managers.scheduler_components.output_streamer import SchedulerOutputStreamer
from sglang.srt.managers.scheduler_components.pool_stats_observer import SchedulerPoolStatsObserver
from sglang.srt.managers.scheduler_components.profiler_manager import SchedulerProfilerManager
from sglang.srt.managers.scheduler_components.request_receiver import SchedulerRequestReceiver
from sglang.srt.managers.tp_worker import TpModelWorker
from sglang.srt.managers.utils import is_health_check_generate_req
from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache
from sglang.srt.observability.req_time_stats import set_time_batch
from sglang.srt.plugins import load_plugins
from sglang.srt.runtime_context import SpawnRanks, get_parallel, publish
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm


class Scheduler:
    """Schedules requests, runs batches and sends outputs. `turn` is one iteration of the event loop that the settings select."""

    def __init__(self, server_args, port_args):
        self.server_args = server_args
        self.enable_overlap = not server_args.disable_overlap_schedule
        self.disaggregation_mode = DisaggregationMode.NULL
        self.is_generation, self.is_mixed_chunk = True, server_args.enable_mixed_chunk
        self.spec_algorithm = SpeculativeAlgorithm.from_string(server_args.speculative_algorithm)
        self.chunked_prefill_size, self.page_size = server_args.chunked_prefill_size, server_args.page_size
        self.max_running_requests, self.max_total_num_tokens = server_args.max_running_requests, server_args.max_total_tokens
        self.model_config = None
        self.metrics_collector = object() if server_args.enable_metrics else None
        self.tp_worker = self.model_worker = TpModelWorker(server_args)
        self.token_to_kv_pool_allocator = TokenToKVPoolAllocator(self.max_total_num_tokens)
        self.tree_cache = UnifiedRadixCache()
        self.waiting_queue, self.chunked_req = [], None
        self.running_batch = ScheduleBatch(reqs=[])
        self.last_batch = self.cur_batch_for_debug = None
        self.result_queue = deque()
        self.enable_skip_finishing_decode = self.enable_overlap
        self.forward_ct = 0
        self.gracefully_exit = self._sched_idled = False
        self._pending_chunked_abort_req = None
        self._deferred_input_requests = []
        is_first = get_parallel().attn_tp_rank == 0
        pool = dict(token_to_kv_pool_allocator=self.token_to_kv_pool_allocator, tree_cache=self.tree_cache)
        overlap = dict(enable_overlap=self.enable_overlap)
        self.request_receiver = SchedulerRequestReceiver(get_socket(port_args.scheduler_input_ipc_name))
        self.send_to_tokenizer = SenderWrapper(get_socket(port_args.tokenizer_ipc_name) if is_first else None)
        self.metrics_reporter = SchedulerMetricsReporter(self)
        self.grammar_manager = GrammarManager(self)
        self.profiler_manager = SchedulerProfilerManager(lambda: self.forward_ct)
        self.pool_stats_observer = SchedulerPoolStatsObserver(max_total_num_tokens=self.max_total_num_tokens, **pool)
        self.dp_attn_adapter = SchedulerDPAttnAdapter(spec_algorithm=self.spec_algorithm, **pool, **overlap)
        self.output_streamer = SchedulerOutputStreamer(
            send_to_detokenizer=SenderWrapper(get_socket(port_args.detokenizer_ipc_name) if is_first else None),
            tree_cache=self.tree_cache, server_args=server_args, is_generation=True, spec_algorithm=self.spec_algorithm,
        )  # fmt: skip
        self.batch_result_processor = SchedulerBatchResultProcessor(
            metrics_reporter=self.metrics_reporter, model_worker=self.model_worker, output_streamer=self.output_streamer, **pool, **overlap
        )
        self.init_request_dispatcher()

    def init_request_dispatcher(self):
        self._request_dispatcher = {
            TokenizedGenerateReqInput: self.handle_generate_request,
            BatchTokenizedGenerateReqInput: self.handle_batch_generate_request,
            AbortReq: lambda req: self.abort_request(req),
            ProfileReq: lambda req: self.profiler_manager._profile(req),
        }

    def get_init_info(self):
        return {"status": "ready", "max_total_num_tokens": self.max_total_num_tokens}

    # Loops

    def run_event_loop(self):
        while not self.gracefully_exit:
            self.turn()

    def turn(self):
        (self._turn_overlap if self.enable_overlap else self._turn_normal)()

    def event_loop_normal(self):
        while not self.gracefully_exit:
            self._turn_normal()

    def event_loop_overlap(self):
        while not self.gracefully_exit:
            self._turn_overlap()

    def _turn_normal(self):
        self.ingest_requests()
        batch = self._next_batch()
        if batch:
            result = self.run_batch(batch)
            self.process_batch_result(batch, result)
        else:
            self._sched_idled = True
            self.on_idle()
        self.last_batch = batch

    def _turn_overlap(self):
        self.ingest_requests()
        batch = self._next_batch()
        is_ordered = self.is_disable_overlap_for_batch(batch, last_batch=self.last_batch)
        if is_ordered:
            self.process_batch_result(*self.result_queue.popleft())
        batch_result = None
        if batch:
            batch_result = self.run_batch(batch)
            self.result_queue.append((batch.copy(), batch_result))
        else:
            self._sched_idled = True
        if self.last_batch:
            if not is_ordered:
                self.process_batch_result(*self.result_queue.popleft())
        elif batch is None:
            self.on_idle()
        self.launch_batch_sample_if_needed(batch_result, batch)
        self.last_batch = batch

    def _next_batch(self):
        plan = self.get_next_batch_to_run(running_batch=self.running_batch, last_batch=self.last_batch)
        self.running_batch = plan.running_batch
        self.cur_batch_for_debug = plan.batch_to_run
        return plan.batch_to_run

    def is_disable_overlap_for_batch(self, batch, last_batch):
        if not os.environ.get("SGLANG_DISABLE_CONSECUTIVE_PREFILL_OVERLAP"):
            return False
        return bool(batch and last_batch and batch.forward_mode.is_extend() and last_batch.forward_mode.is_extend())

    def on_idle(self):
        if not self.waiting_queue:
            self.metrics_reporter.record_scheduler_idle()

    def is_fully_idle(self, for_health_check=False, ignore_waiting=False):
        return not (self.waiting_queue or self.running_batch.reqs or self.last_batch or self.result_queue or self.grammar_manager.grammar_queue)

    # Requests

    def ingest_requests(self, stop_at_pause=False):
        recv_reqs = self.request_receiver.recv_requests(local_reqs=[])
        self.process_input_requests(recv_reqs)
        return recv_reqs

    def process_input_requests(self, recv_reqs):
        for recv_req in recv_reqs:
            if is_health_check_generate_req(recv_req) and not self.is_fully_idle(for_health_check=True):
                continue
            output = self._request_dispatcher[type(recv_req)](recv_req)
            if output is not None:
                self.send_control_output(output, recv_req)

    def send_control_output(self, output, recv_req):
        self.send_to_tokenizer.send_output(output, recv_req)

    def send_abort_output(self, abort_req, req):
        self.send_to_tokenizer.send_output(abort_req, req)

    def handle_generate_request(self, recv_req, *, mm_input_error=None):
        req = Req(
            recv_req.rid, recv_req.input_text, recv_req.input_ids, recv_req.sampling_params, stream=recv_req.stream,
            lora_id=recv_req.lora_id, bootstrap_room=recv_req.bootstrap_room, disagg_mode=self.disaggregation_mode, priority=recv_req.priority,
            metrics_collector=self.metrics_collector, http_worker_ipc=recv_req.http_worker_ipc, time_stats=recv_req.time_stats,
        )  # fmt: skip
        if not self.grammar_manager.process_req_with_grammar(req):
            self._add_request_to_queue(req)

    def handle_batch_generate_request(self, recv_req):
        for tokenized_req in recv_req:
            self.handle_generate_request(tokenized_req)

    def _add_request_to_queue(self, req, is_retracted=False):
        self.waiting_queue.append(req)
        req.time_stats.set_wait_queue_entry_time()

    def abort_request(self, recv_req):
        def is_named(req):
            return recv_req.abort_all or req.rid.startswith(recv_req.rid)

        if self.chunked_req is not None and is_named(self.chunked_req):
            self._pending_chunked_abort_req = self.chunked_req
        for req in [one for one in reversed(self.waiting_queue) if is_named(one)]:
            self.waiting_queue.remove(req)
            self.send_abort_output(AbortReq(rid=req.rid, finished_reason=recv_req.finished_reason), req)
        self.grammar_manager.abort_requests(recv_req)
        for req in self.collect_inflight_reqs():
            if not req.finished() and is_named(req):
                req.to_finish = FINISH_ABORT()

    def collect_inflight_reqs(self):
        batches = [self.running_batch, self.last_batch]
        return {req for batch in batches if batch is not None for req in batch.reqs}

    # Scheduling

    def process_pending_chunked_abort(self):
        req, self._pending_chunked_abort_req = self._pending_chunked_abort_req, None
        if req is not None and req is self.chunked_req:
            self.chunked_req = None
            req.to_finish = FINISH_ABORT()
            req.update_finish_state(0)
            self.token_to_kv_pool_allocator.free_tokens += req.kv_tokens
            req.inflight_middle_chunks = 0
            self.send_abort_output(AbortReq(rid=req.rid), req)

    def get_next_batch_to_run(self, running_batch, last_batch):
        self.process_pending_chunked_abort()
        excluded = [self.chunked_req] if self.chunked_req is not None else []
        if last_batch and last_batch.forward_mode.is_extend():
            if last_batch.chunked_req is not None:
                excluded.append(last_batch.chunked_req)
            last_batch.filter_batch(reqs_to_exclude=excluded)
            if not last_batch.is_empty():
                if running_batch.is_empty():
                    running_batch = last_batch
                else:
                    running_batch.merge_batch(last_batch)
        running_batch.filter_batch()
        plan = self.get_new_batch_prefill(running_batch)
        batch, running_batch = plan.batch_to_run, plan.running_batch
        if batch is None and not running_batch.is_empty():
            batch = self.update_running_batch(running_batch)
            batch = None if batch is None or batch.is_empty() else batch
        batch = self.dp_attn_adapter.maybe_prepare_mlp_sync_batch(batch, need_sync=None)
        return NextBatchPlan(batch_to_run=batch, running_batch=running_batch)

    def get_new_batch_prefill(self, running_batch):
        batch, running_batch = self._get_new_batch_prefill_raw(prefill_delayer_single_pass=None, running_batch=running_batch)
        return NextBatchPlan(batch_to_run=batch, running_batch=running_batch)

    def _get_new_batch_prefill_raw(self, prefill_delayer_single_pass, running_batch):
        if self.grammar_manager.has_waiting_grammars():
            for req in self.grammar_manager.get_ready_grammar_requests():
                self._add_request_to_queue(req)
        if not self.waiting_queue and self.chunked_req is None:
            return None, running_batch
        can_run_list = self._admit(running_batch)
        if not can_run_list:
            return None, running_batch
        if self.chunked_req is not None:
            self.chunked_req.inflight_middle_chunks += 1
        set_time_batch(can_run_list, "set_forward_entry_time")
        new_batch = ScheduleBatch.init_new(
            can_run_list, None, self.token_to_kv_pool_allocator, self.tree_cache, self.model_config, self.enable_overlap, self.spec_algorithm,
            chunked_req=self.chunked_req,
        )  # fmt: skip
        new_batch.prepare_for_extend()
        new_batch.prefill_stats = self._prefill_stats(new_batch, running_batch)
        if self.is_mixed_chunk and not running_batch.is_empty() and running_batch.check_decode_mem():
            running_batch.filter_batch(reqs_to_exclude=self._reqs_finishing_inflight(running_batch))
            if not running_batch.is_empty():
                running_batch.prepare_for_decode()
                new_batch.mix_with_running(running_batch)
                new_batch.decoding_reqs = running_batch.reqs
                running_batch = ScheduleBatch(reqs=[])
        return new_batch, running_batch

    def _admit(self, running_batch):
        """Returns the requests of the next prefill: the one whose prefill continues, then those that wait, until the tokens of a chunk are used up."""
        budget, can_run_list = self.chunked_prefill_size, []
        chunked, self.chunked_req = self.chunked_req, None
        if chunked is not None:
            chunked.init_next_round_input()
            budget -= self._extend(chunked, budget)
            can_run_list.append(chunked)
        room = self.token_to_kv_pool_allocator.free_tokens + self.tree_cache.size
        while self.waiting_queue and budget > 0 and self.chunked_req is None:
            req = self.waiting_queue[0]
            if len(running_batch.reqs) + len(can_run_list) >= self.max_running_requests or req.seqlen + 1 > room:
                break
            room -= req.seqlen
            req.init_next_round_input(self.tree_cache)
            budget -= self._extend(req, budget)
            can_run_list.append(self.waiting_queue.pop(0))
        return can_run_list

    def _extend(self, req, budget):
        req.extend_end = min(req.seqlen, req.prefix_len + budget)
        if req.extend_end < req.seqlen:
            self.chunked_req = req
        return req.extend_len

    def _prefill_stats(self, batch, running_batch):
        first = [req for req in batch.reqs if req.extend_batch_idx == 1]
        return PrefillStats(
            log_input_tokens=batch.extend_num_tokens,
            log_hit_tokens=sum(req.prefix_len for req in first),
            new_token_ratio=0.7,
            num_running_reqs=len(running_batch.reqs),
            num_new_seqs=len(batch.reqs),
            log_device_hit_tokens=sum(req.prefix_len - req.host_hit_length for req in first),
            log_host_hit_tokens=sum(req.host_hit_length - req.storage_hit_length for req in first),
            log_storage_hit_tokens=sum(req.storage_hit_length for req in first),
        )

    def _reqs_finishing_inflight(self, batch):
        if not self.enable_skip_finishing_decode or not self.result_queue:
            return []
        queued = self.result_queue[0][0].reqs
        return [req for req in batch.reqs if req.next_output_finishes_by_length() and req in queued]

    def update_running_batch(self, batch):
        finishing = self._reqs_finishing_inflight(batch)
        batch.filter_batch(reqs_to_exclude=finishing)
        if batch.is_empty():
            return batch
        if not batch.check_decode_mem():
            if finishing:
                return None
            retracted_reqs, _, _ = batch.retract_decode()
            self.metrics_reporter.num_retracted_reqs = len(retracted_reqs)
            for req in retracted_reqs:
                self._add_request_to_queue(req, is_retracted=True)
        batch.prepare_for_decode()
        return batch

    # Batches

    def run_batch(self, batch, pp_proxy_tensors=None):
        self.metrics_reporter.record_scheduler_active(time.monotonic_ns())
        self.forward_ct += 1
        batch.forward_iter, batch.launch_ts = self.forward_ct, time.monotonic()
        batch.after_idle_gap, self._sched_idled = self._sched_idled, False
        self.profiler_manager._profile_batch_predicate(batch)
        return self.model_worker.forward_batch_generation(batch)

    def launch_batch_sample_if_needed(self, batch_result, cur_batch):
        if batch_result is not None and batch_result.delay_sample_func is not None:
            batch_result.delay_sample_func()
            batch_result.delay_sample_func = None

    def process_batch_result(self, batch, result):
        mode, processor = batch.forward_mode, self.batch_result_processor
        if mode.is_decode():
            processor.process_batch_result_decode(batch, result)
        elif mode.is_extend():
            processor.process_batch_result_prefill(batch, result)
        elif mode.is_prebuilt():
            processor.process_batch_result_prebuilt(batch)
        elif mode.is_idle():
            processor.process_batch_result_idle(batch, result)
        self.metrics_reporter.log_batch_result_stats(batch, result)


def configure_scheduler_process(server_args, gpu_id, display_tp_rank=None, display_dp_rank=None, display_moe_ep_rank=None):
    parallel = get_parallel()
    prefix = "" if parallel.dp_rank is None else f" DP{parallel.dp_rank}"
    if parallel.pp_size > 1:
        prefix += f" PP{parallel.pp_rank}"
    if parallel.tp_size > 1:
        prefix += f" TP{parallel.tp_rank}"
    setproctitle.setproctitle(f"sglang::scheduler{prefix.replace(' ', '_')}")


def resolve_spawn_dp_rank(dp_rank):
    return int(os.environ["SGLANG_DP_RANK"]) if dp_rank is None and "SGLANG_DP_RANK" in os.environ else dp_rank


def run_scheduler_process(
    server_args, port_args, gpu_id, tp_rank, pp_rank, dp_rank, pipe_writer, display_tp_rank=None, display_dp_rank=None, display_moe_ep_rank=None
):
    """Runs a scheduler in this process. The fake returns after its first turn if `pipe_writer` is `None`."""
    load_plugins()
    ranks = SpawnRanks(pp_rank * server_args.tp_size + tp_rank, resolve_spawn_dp_rank(dp_rank), gpu_id)
    publish(server_args, role="scheduler", ranks=ranks)
    configure_scheduler_process(server_args, gpu_id)
    scheduler = Scheduler(server_args, port_args)
    if pipe_writer is not None:
        pipe_writer.send(scheduler.get_init_info())
        scheduler.run_event_loop()
    return scheduler
