from dataclasses import dataclass


@dataclass(kw_only=True, slots=True)
class SchedulerBatchResultProcessor:
    enable_overlap: bool
    token_to_kv_pool_allocator: object
    tree_cache: object
    metrics_reporter: object
    model_worker: object
    output_streamer: object

    def process_batch_result_prebuilt(self, batch):
        for req in batch.reqs:
            req.update_finish_state(0)
        self.output_streamer.stream_output(batch.reqs, batch.return_logprob)

    def process_batch_result_prefill(self, batch, result):
        skip_stream_req = None
        for req, token in zip(batch.reqs, result.next_token_ids.tolist()):
            if (req.finished() and req.inflight_middle_chunks <= 0) or req.is_retracted:
                continue
            if req.inflight_middle_chunks > 0:
                req.inflight_middle_chunks -= 1
                skip_stream_req = req
                req.time_stats.set_last_chunked_prefill_finish_time()
                continue
            req.time_stats.set_prefill_finished_time()
            req.output_ids.append(token)
            req.update_finish_state()
            if req.finished():
                self._release(req)
        self.output_streamer.stream_output(batch.reqs, batch.return_logprob, skip_stream_req)
        if batch.prefill_stats is not None:
            self.metrics_reporter.report_prefill_stats(
                batch=batch, prefill_stats=batch.prefill_stats, can_run_cuda_graph=result.can_run_cuda_graph, dp_cooperation_info=None
            )

    def process_batch_result_idle(self, batch, result):
        self.output_streamer._stream_output_generation(batch.reqs, batch.return_logprob, is_idle_batch=True)

    def process_batch_result_decode(self, batch, result):
        is_spec = not batch.spec_algorithm.is_none()
        if is_spec:
            next_token_ids = self._resolve_spec_v2_tokens(result, batch)
        else:
            next_token_ids = [[token] for token in result.next_token_ids.tolist()]
        num_generated_tokens = result.get_num_generated_tokens(batch.batch_size())
        self.metrics_reporter.num_generated_tokens += num_generated_tokens
        if is_spec:
            self.metrics_reporter.update_spec_metrics(batch.batch_size(), result.num_correct_drafts, num_accept_tokens=num_generated_tokens)
        for req, tokens in zip(batch.reqs, next_token_ids):
            if self.enable_overlap and (req.finished_reason is not None or req.is_retracted):
                continue
            req.time_stats.set_last_decode_finish_time()
            req.output_ids.extend(tokens)
            req.update_finish_state(len(tokens))
            if req.finished_reason is not None:
                self._release(req)
        self.output_streamer.stream_output(batch.reqs, batch.return_logprob)
        self.metrics_reporter.forward_ct_decode += 1
        self.metrics_reporter.report_decode_stats(
            result.can_run_cuda_graph, running_batch=batch, num_generated_tokens=num_generated_tokens
        )

    def _resolve_spec_v2_tokens(self, result, batch):
        next_token_ids, accept_lens = result.next_token_ids.tolist(), result.accept_lens.tolist()
        stride = result.speculative_num_draft_tokens
        result.num_correct_drafts_per_req_cpu = [length - 1 for length in accept_lens]
        result.num_correct_drafts = sum(result.num_correct_drafts_per_req_cpu)
        self.model_worker.on_verify_complete_cpu(result.num_correct_drafts_per_req_cpu, batch_size=len(batch.reqs))
        for req, drafts in zip(batch.reqs, result.num_correct_drafts_per_req_cpu):
            if not (req.is_retracted or req.finished()):
                req.spec_verify_ct += 1
                req.spec_num_correct_drafts += drafts
        return [next_token_ids[i * stride : i * stride + length] for i, length in enumerate(accept_lens)]

    def _release(self, req):
        """Leaves the tokens of a finished request in the prefix cache, which may be evicted."""
        self.tree_cache.size += req.kv_tokens
        req.kv_tokens = 0
        req.time_stats.set_completion_time()
