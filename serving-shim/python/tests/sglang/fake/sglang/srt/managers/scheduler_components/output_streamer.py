from dataclasses import dataclass

from sglang.srt.managers.io_struct import BatchTokenIDOutput, wrap_as_pickle
from sglang.srt.runtime_context import get_parallel, get_serving

DEFAULT_FORCE_STREAM_INTERVAL = 50


@dataclass(kw_only=True, slots=True)
class SchedulerOutputStreamer:
    send_to_detokenizer: object
    tree_cache: object
    server_args: object
    is_generation: bool
    spec_algorithm: object

    def get_cached_tokens_details(self, req):
        if req.cached_tokens_device or req.cached_tokens_host or req.cached_tokens_storage:
            details = {"device": req.cached_tokens_device, "host": req.cached_tokens_host}
            if req.cached_tokens_storage:
                details["storage"] = req.cached_tokens_storage
            return details
        return {"device": req.cached_tokens, "host": 0} if req.cached_tokens > 0 else None

    def stream_output(self, reqs, return_logprob, skip_req=None):
        self._stream_output_generation(reqs, return_logprob, skip_req)

    def _stream_output_generation(self, reqs, return_logprob, skip_req=None, is_idle_batch=False):
        sent = [req for req in reqs if req is not skip_req and not (req.finished() and req.finished_output) and self._is_due(req)]
        if not (sent or is_idle_batch):
            return
        columns = list(zip(*map(self._row, sent))) or [()] * 10
        decoded, decode_ids, offsets, output_ids, prompt, completion, cached, reasons, retractions, stats = map(list, columns)
        none, has_spec = [False] * len(sent), not self.spec_algorithm.is_none()
        self.send_to_detokenizer.send_output(
            BatchTokenIDOutput(
                rids=[req.rid for req in sent],
                http_worker_ipcs=[req.http_worker_ipc for req in sent],
                finished_reasons=reasons,
                decoded_texts=decoded,
                decode_ids=decode_ids,
                read_offsets=offsets,
                output_ids=output_ids,
                skip_special_tokens=[True] * len(sent),
                spaces_between_special_tokens=[True] * len(sent),
                no_stop_trim=none,
                prompt_tokens=prompt,
                reasoning_tokens=[0] * len(sent),
                completion_tokens=completion,
                cached_tokens=cached,
                retraction_counts=retractions,
                cached_tokens_details=[self.get_cached_tokens_details(req) for req in sent],
                dp_ranks=[get_parallel().dp_rank] * len(sent) if sent else None,
                time_stats=wrap_as_pickle(stats),
                spec_verify_ct=[req.spec_verify_ct for req in sent] if has_spec else [],
                spec_num_correct_drafts=[req.spec_num_correct_drafts for req in sent] if has_spec else [],
            )
        )

    def _is_due(self, req):
        if req.finished():
            req.finished_output = True
            if req.finished_len is None:
                req.finished_len = len(req.output_ids)
            return True
        if not req.stream:
            return len(req.output_ids) % DEFAULT_FORCE_STREAM_INTERVAL == 0
        interval, unsent = req.sampling_params.stream_interval or get_serving().stream_interval, len(req.output_ids) - req.send_token_offset
        return interval == 1 or unsent >= interval or (req.send_token_offset == 0 and unsent > 0)

    def _row(self, req):
        output_ids = req.output_ids_through_stop
        unsent = output_ids[req.send_token_offset :]
        req.send_token_offset = len(output_ids)
        decode_ids, read_offset = req.init_incremental_detokenize()
        undecoded = decode_ids[req.send_decode_id_offset :]
        req.send_decode_id_offset = len(decode_ids)
        return (
            req.decoded_text, undecoded, read_offset, unsent, len(req.origin_input_ids), len(output_ids), req.cached_tokens,
            req.finished_reason.to_json() if req.finished_reason else None, req.retraction_count, req.time_stats,
        )  # fmt: skip
