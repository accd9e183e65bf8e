"""The moments of SGLang's requests in the scheduler, from SGLang's own `Req` and its stamps."""

from .._sa_profile import OutputLayout, from_monotonic, from_wall_clock
from .._engine.requests import EngineRequests

HEALTH_CHECK = "HEALTH_CHECK"  # begin of the ids of requests that SGLang sends to itself for /health_generate, and leaves out of its metrics
LAYOUT = OutputLayout("rid", "output_ids", "finished_reason", cumulative=True)  # of SGLang's `Req`
# With speculation, a request's last batch may accept more tokens than it may have. This attribute is computed on each access, and leaves them out.
SPECULATIVE_LAYOUT = OutputLayout("rid", "output_ids_through_stop", "finished_reason", cumulative=True)
TIERS = ("host", "storage")  # caches of prefixes other than the device's own memory


def is_health_check(request_id):
    """Returns true for a request with which SGLang checks itself."""
    return isinstance(request_id, str) and request_id.startswith(HEALTH_CHECK)


def stamp_ns(owner, name):
    """Returns one of SGLang's stamps as a time of the recorder, or `None` if it is not set. They are from `time.perf_counter`, before 0.5.10 in part from `time.time`."""
    found = getattr(owner, name, None)
    return from_monotonic(found) or (from_wall_clock(found) if found else None)


def reason(finish_reason):
    """Returns the API's name for a finish reason: `stop`, `length` or `abort`."""
    if not isinstance(finish_reason, dict):
        finish_reason = finish_reason.to_json()
    return finish_reason.get("type")


class Requests(EngineRequests):
    """The requests of one scheduler."""

    def __init__(self, cache, speculates):
        super().__init__(SPECULATIVE_LAYOUT if speculates else LAYOUT)
        self._cache = cache

    def joined(self, request_id):
        """Returns what SGLang knows of a request that arrived while recording was off. In the overlap loop, a finished or retracted request is in one further batch, and is not opened for that."""
        for theirs in self.step_outputs or ():
            if theirs.rid == request_id and theirs.finished_reason is None and not theirs.is_retracted and not is_health_check(request_id):
                return len(theirs.origin_input_ids), len(theirs.output_ids)
        return None

    def receive(self, message):
        """Opens the span of a request that reaches the scheduler."""
        if not is_health_check(message.rid):
            self.arrived(message.rid, len(message.input_ids or ()))

    def enqueue(self, theirs, was_running):
        """Records that a request is in the queue, at SGLang's own time: for the first time, or again because it has lost its memory."""
        stats = theirs.time_stats
        queued_ns = stamp_ns(stats, "wait_queue_entry_time")
        if was_running or theirs.is_retracted:  # one that makes room for a request of higher priority is added like a new one
            if theirs.rid in self.open:
                self.preempted(theirs.rid, queued_ns)
        elif queued_ns is not None:
            self.queued(theirs.rid, queued_ns)

    def schedule(self, batch):
        """Records which requests a batch starts or resumes. A long prompt is computed by several batches."""
        for theirs in batch.reqs:
            one = self.open.get(theirs.rid)
            if one is not None and not one.is_running:
                self._start(theirs, one)

    def _start(self, theirs, one):
        stats = theirs.time_stats
        if not one.is_queued:  # a disaggregated server queues requests after a transfer
            queued_ns = stamp_ns(stats, "wait_queue_entry_time")
            if queued_ns is not None:
                self.queued(theirs.rid, queued_ns)
        # Before 0.5.10 there is no stamp of the return after a retraction.
        ts_ns = stamp_ns(stats, "last_forward_entry_time" if one.preemptions else "forward_entry_time")
        cached = theirs.cached_tokens
        tiers = {f"cached_{tier}_tokens": getattr(theirs, f"cached_tokens_{tier}", 0) for tier in TIERS}
        tiers = {name: tokens for name, tokens in tiers.items() if tokens}
        if tiers:
            tiers["cached_device_tokens"] = theirs.cached_tokens_device
        if not one.preemptions:
            self._cache.add("queries", len(theirs.origin_input_ids))
            self._cache.add("hits", cached)
        self.started(theirs.rid, ts_ns, None, cached, **tiers)

    def first_token(self, outputs, at, one, ts_ns):
        """Returns SGLang's own time of the first token. A decode server starts its requests without a batch that extends them."""
        if not one.is_running:
            self._start(outputs[at], one)
        return stamp_ns(outputs[at].time_stats, "prefill_finished_time") or ts_ns, {}

    def last_output(self, outputs, at, finish_reason, ts_ns):
        """Returns the API's name for the finish reason, and SGLang's own time of the end."""
        return reason(finish_reason), stamp_ns(outputs[at].time_stats, "completion_time") or ts_ns
