"""The moments of vLLM's requests in the engine, from vLLM's own request and output objects."""

from .._sa_profile import OutputLayout, from_monotonic, is_enabled
from .._engine.requests import EngineRequests
from .._hooks.chain import chain_details
from . import prompt_blocks
from .batch import resumed_ids

LAYOUT = OutputLayout("request_id", "new_token_ids", "finish_reason")  # of vLLM's `EngineCoreOutput`


class Requests(EngineRequests):
    """The requests of one engine, by internal id."""

    def __init__(self, scheduler):
        super().__init__(LAYOUT)
        self._scheduler = scheduler  # a weak reference

    def _vllm_request(self, request_id):
        """Returns vLLM's own request."""
        return getattr(self._scheduler(), "requests", {}).get(request_id)

    def joined(self, request_id):
        """Returns what vLLM knows of a request that arrived while recording was off."""
        theirs = self._vllm_request(request_id)
        return getattr(theirs, "num_prompt_tokens", None), getattr(theirs, "num_output_tokens", 0)

    def receive(self, new):
        """Opens the span of a request that reaches the engine."""
        chain_details()  # the level may have been raised since the last request
        self.arrived(new.request_id, _prompt_tokens(new))

    def enqueue(self, request_id):
        """Records that the scheduler has queued the request, at vLLM's own time."""
        if self.open.get(request_id) is None:
            return
        theirs = self._vllm_request(request_id)
        ts_ns = _event_ns(theirs, "QUEUED")
        one = self.queued(request_id, ts_ns)
        if one is not None and is_enabled("verbose"):
            prompt_blocks.record(one.span, theirs, self._scheduler(), ts_ns)

    def scheduled(self, output, preempted, began_ns):
        """Records which requests a step preempts, starts and resumes. `began_ns` is when the scheduler started."""
        for request_id in preempted:
            self.preempted(request_id)
        for new in output.scheduled_new_reqs:
            self._start(new.req_id, began_ns, new.num_computed_tokens)
        for request_id in resumed_ids(output):
            self._start(request_id, began_ns)

    def _start(self, request_id, began_ns, cached_tokens=0):
        one = self.find(request_id)
        ts_ns = one is not None and not one.preemptions and _event_ns(self._vllm_request(request_id), "SCHEDULED")
        self.started(request_id, ts_ns or began_ns, began_ns, cached_tokens)

    def first_token(self, outputs, at, one, ts_ns):
        """Stores the number of cached prompt tokens, which vLLM sends with a request's first output."""
        stats = getattr(outputs[at], "prefill_stats", None)
        if stats is not None:
            one.cached_tokens = stats.num_cached_tokens
        return ts_ns, {}

    def last_output(self, _outputs, _at, finish_reason, ts_ns):
        """Returns the API's name for the finish reason."""
        return reason(finish_reason), ts_ns


def _prompt_tokens(new):
    """Returns the prompt length of vLLM's own request, or of the message that describes it, which engines before 0.10 get."""
    if hasattr(new, "num_prompt_tokens"):
        return new.num_prompt_tokens
    prompt = getattr(new, "prompt_token_ids", None)
    return None if prompt is None else len(prompt)


def reason(value):
    """Returns vLLM's reason or status as its API names it: `stop`, `length`, `abort` and so on."""
    name = str(getattr(value, "name", value)).lower().removeprefix("finished_")
    return {"stopped": "stop", "length_capped": "length", "aborted": "abort", "ignored": "length"}.get(name, name)


def _event_ns(request, name):
    """Returns when vLLM's own request first had an event: `QUEUED` or `SCHEDULED`. Returns `None` if vLLM keeps no stamps (`--disable-log-stats`).

    The result is a time of the recorder, which uses `CLOCK_MONOTONIC` like `time.monotonic`. vLLM computes its metrics from these stamps, so an event at the same time
    gives the same figures. For a stamp of another kind, for example an embedder's, it returns `None`, and the event gets the time at which the plugin sees it.
    """
    for event in getattr(request, "events", None) or ():
        if getattr(getattr(event, "type", None), "name", None) == name:
            return from_monotonic(getattr(event, "timestamp", None))
    return None
