import time
from dataclasses import dataclass

from sglang.srt.disaggregation.utils import DisaggregationMode

global_diff_realtime_monotonic = time.time() - time.perf_counter()


def convert_time_to_realtime(time_value):
    return time_value + global_diff_realtime_monotonic


@dataclass
class ReqTimeStatsBase:
    enable_metrics: bool = False
    metrics_collector: object = None
    disagg_mode: DisaggregationMode = DisaggregationMode.NULL
    diff_realtime_monotonic: float = 0.0

    @classmethod
    def new_from_obj(cls, obj, *args, **kwargs):
        new_obj = cls(*args, **kwargs)
        for key, value in obj.__dict__.items() if obj is not None else ():
            if hasattr(new_obj, key):
                setattr(new_obj, key, value)
        return new_obj

    def set_metrics_collector(self, collector):
        if collector:
            self.enable_metrics, self.metrics_collector = True, collector

    def __getstate__(self):
        return {"disagg_mode": self.disagg_mode, "enable_metrics": False, "diff_realtime_monotonic": global_diff_realtime_monotonic}

    def __setstate__(self, state):
        self.__dict__.update(state)


@dataclass
class APIServerReqTimeStats(ReqTimeStatsBase):
    created_time: float = 0.0
    finished_time: float = 0.0
    first_token_time: float = 0.0
    last_time: float = 0.0
    tokenize_finish_time: float = 0.0
    api_server_dispatch_time: float = 0.0
    api_server_dispatch_finish_time: float = 0.0
    response_sent_to_client_time: float = 0.0

    def set_created_time(self, ts=None):
        self.created_time = ts or time.perf_counter()

    def set_finished_time(self, ts=None, span_attrs=None):
        self.finished_time = ts or time.perf_counter()

    def set_first_token_time(self, ts=None):
        self.first_token_time = self.last_time = ts or time.perf_counter()

    def set_last_time(self, ts=None):
        self.last_time = ts or time.perf_counter()

    def set_tokenize_finish_time(self, ts=None):
        self.tokenize_finish_time = ts or time.perf_counter()

    def set_api_server_dispatch_time(self, ts=None):
        self.api_server_dispatch_time = ts or time.perf_counter()

    def set_api_server_dispatch_finish_time(self, ts=None):
        self.api_server_dispatch_finish_time = ts or time.perf_counter()

    def set_response_sent_to_client_time(self, ts=None):
        self.response_sent_to_client_time = ts or time.perf_counter()

    def get_e2e_latency(self):
        return self.finished_time - self.created_time


@dataclass
class DPControllerReqTimeStats(ReqTimeStatsBase):
    created_time: float = 0.0
    api_server_dispatch_time: float = 0.0
    dpc_dispatch_time: float = 0.0
    dpc_dispatch_finish_time: float = 0.0

    def set_dp_dispatch_time(self, ts=None):
        self.dpc_dispatch_time = ts or time.perf_counter()

    def set_dp_dispatch_finish_time(self, ts=None):
        self.dpc_dispatch_finish_time = ts or time.perf_counter()


@dataclass
class SchedulerReqTimeStats(ReqTimeStatsBase):
    created_time: float = 0.0
    api_server_dispatch_time: float = 0.0
    dpc_dispatch_time: float = 0.0
    wait_queue_entry_time: float = 0.0
    forward_entry_time: float = 0.0
    prefill_finished_time: float = 0.0
    completion_time: float = 0.0
    scheduler_recv_time: float = 0.0
    last_chunked_prefill_finish_time: float = 0.0
    last_decode_finish_time: float = 0.0
    last_decode_scheduled_time: float = 0.0
    last_forward_entry_time: float = 0.0
    last_prefill_finished_time: float = 0.0
    queue_duration_s: float = 0.0
    has_timing_data: bool = False

    def __getstate__(self):
        if not (self.enable_metrics or self.has_timing_data):
            return {}
        sent = ("wait_queue_entry_time", "forward_entry_time", "prefill_finished_time", "queue_duration_s")
        return {"has_timing_data": True, **{name: getattr(self, name) for name in sent}}

    def set_scheduler_recv_time(self, ts=None):
        self.scheduler_recv_time = ts or time.perf_counter()

    def set_retract_time(self, ts=None):
        self.last_forward_entry_time = self.last_prefill_finished_time = self.last_chunked_prefill_finish_time = 0.0
        self.last_decode_finish_time = self.last_decode_scheduled_time = 0.0

    def set_wait_queue_entry_time(self, ts=None):
        ts = ts or time.perf_counter()
        if self.wait_queue_entry_time != 0.0:
            self.set_retract_time(ts)
        self.wait_queue_entry_time = ts

    def set_forward_entry_time(self, ts=None):
        ts = ts or time.perf_counter()
        if self.forward_entry_time == 0.0:
            self.forward_entry_time = self.last_forward_entry_time = ts
            self.queue_duration_s += ts - self.wait_queue_entry_time
        elif self.last_forward_entry_time == 0.0:
            self.last_forward_entry_time = ts
            self.queue_duration_s += ts - self.wait_queue_entry_time

    def set_last_chunked_prefill_finish_time(self, ts=None):
        self.last_chunked_prefill_finish_time = ts or time.perf_counter()

    def set_prefill_finished_time(self, ts=None):
        ts = ts or time.perf_counter()
        if self.prefill_finished_time == 0.0:
            self.prefill_finished_time = self.last_prefill_finished_time = ts
        elif self.last_prefill_finished_time == 0.0:
            self.last_prefill_finished_time = ts

    def set_last_decode_finish_time(self, ts=None):
        self.last_decode_finish_time = ts or time.perf_counter()

    def set_completion_time(self, ts=None):
        self.completion_time = ts or time.perf_counter()


def set_time_batch(reqs, set_func, trace_only=False, attrs=None):
    if not reqs or trace_only:
        return
    ts = time.perf_counter()
    for req in reqs:
        getattr(req.time_stats, set_func)(ts)
