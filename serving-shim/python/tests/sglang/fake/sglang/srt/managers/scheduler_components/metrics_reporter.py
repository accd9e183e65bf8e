from dataclasses import dataclass


@dataclass
class PrefillStats:
    log_input_tokens: int
    log_hit_tokens: int
    new_token_ratio: float
    num_running_reqs: int
    num_new_seqs: int
    reprocessed_log_input_tokens: int = 0
    reprocessed_log_hit_tokens: int = 0
    log_device_hit_tokens: int = 0
    log_host_hit_tokens: int = 0
    log_storage_hit_tokens: int = 0
    num_pending_tokens: int = 0
    log_replay_tokens: int = 0


class SchedulerMetricsReporter:
    def __init__(self, scheduler):
        self.scheduler = scheduler
        self.num_retracted_reqs = self.num_generated_tokens = self.forward_ct_decode = 0
        self.spec_num_accept_tokens = self.spec_num_correct_drafts = self.spec_num_forward_ct = 0
        self.reported = []

    def update_spec_metrics(self, bs, num_correct_drafts, num_accept_tokens, num_block_accept_tokens=0, num_cap_tokens=0):
        self.spec_num_accept_tokens += num_accept_tokens
        self.spec_num_correct_drafts += num_correct_drafts
        self.spec_num_forward_ct += bs

    def report_prefill_stats(self, batch, prefill_stats, can_run_cuda_graph, dp_cooperation_info=None):
        pass

    def report_decode_stats(self, can_run_cuda_graph, running_batch=None, num_generated_tokens=0):
        pass

    def log_batch_result_stats(self, batch, result):
        pass

    def record_scheduler_idle(self):
        pass

    def record_scheduler_active(self, event_ns):
        pass
