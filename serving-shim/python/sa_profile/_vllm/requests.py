"""The lifecycle of each request in the engine: queued, scheduled, preempted, first token, finished; and its counts."""

from .. import flow, now_ns, request
from .._sa_profile import OutputCounter, OutputCounts, is_enabled, from_monotonic
from .._hooks.chain import chain_details
from . import prompt_blocks
from .batch import resumed_ids
from .names import REQUEST


class EngineRequest(OutputCounts):
    """One request in the engine."""

    __slots__ = ("span", "is_queued", "prompt_tokens", "cached_tokens", "preemptions")

    def __new__(cls, _span, _prompt_tokens, output_tokens=0):
        return super().__new__(cls, output_tokens)

    def __init__(self, span, prompt_tokens, _output_tokens=0):
        self.span = span
        self.is_queued = False
        self.prompt_tokens = prompt_tokens
        self.cached_tokens = 0
        self.preemptions = 0

    def counts(self):
        """Returns the request's counts as args."""
        names = ("prompt_tokens", "cached_tokens", "output_tokens", "output_steps", "preemptions")
        return {name: getattr(self, name) for name in names}


class EngineRequests:
    """The requests of one engine, by internal id."""

    def __init__(self, scheduler):
        self._scheduler = scheduler  # a weak reference
        self._open = {}
        self._outputs = OutputCounter()

    def __len__(self):
        return len(self._open)

    def _vllm_request(self, request_id):
        """Returns vLLM's own request."""
        return getattr(self._scheduler(), "requests", {}).get(request_id)

    def arrived(self, new):
        """Opens the span of a request that reaches the engine."""
        chain_details()  # the level may have been raised since the last request
        prompt_tokens = _prompt_tokens(new)
        if new.request_id in self._open:
            return  # a further chunk of a streamed input
        span = request(new.request_id, name="request", cat="request", prompt_tokens=prompt_tokens)
        self._open[new.request_id] = EngineRequest(span, prompt_tokens)

    def queued(self, request_id):
        """Records that the scheduler has queued the request, once and at vLLM's own time."""
        one = self._open.get(request_id)
        if one is not None and not one.is_queued:
            one.is_queued = True
            theirs = self._vllm_request(request_id)
            ts_ns = _event_ns(theirs, "QUEUED")
            one.span.instant("request.queued", ts_ns=ts_ns)
            if is_enabled("verbose"):
                prompt_blocks.record(one.span, theirs, self._scheduler(), ts_ns)

    def _find(self, request_id):
        one = self._open.get(request_id)
        if one is None and is_enabled():  # it arrived while recording was off
            theirs = self._vllm_request(request_id)
            prompt_tokens = getattr(theirs, "num_prompt_tokens", None)
            span = request(request_id, name="request", cat="request", prompt_tokens=prompt_tokens, joined=True)
            one = self._open[request_id] = EngineRequest(span, prompt_tokens, getattr(theirs, "num_output_tokens", 0))
        return one

    def scheduled(self, output, preempted, began_ns):
        """Records which requests a step preempts, starts and resumes. `began_ns` is when the scheduler started."""
        for request_id in preempted:
            one = self._find(request_id)
            if one is None:
                continue
            one.preemptions += 1
            one.span.instant("request.preempted", output_tokens=one.output_tokens)
        for new in output.scheduled_new_reqs:
            one = self._find(new.req_id)
            if one is None:
                continue
            if not one.preemptions:  # after a preemption, the request's own tokens count as cache hits
                one.cached_tokens = new.num_computed_tokens
            self._record_start(new.req_id, one, began_ns, new.num_computed_tokens)
        for request_id in resumed_ids(output):
            self._record_start(request_id, self._find(request_id), began_ns)

    def _record_start(self, request_id, one, began_ns, cached_tokens=0):
        if one is None:
            return
        if one.preemptions:
            one.span.instant("request.resumed", ts_ns=began_ns, cached_tokens=cached_tokens)
        else:
            scheduled_ns = _event_ns(self._vllm_request(request_id), "SCHEDULED") or began_ns
            one.span.instant("request.scheduled", ts_ns=scheduled_ns, cached_tokens=cached_tokens)
        flow(REQUEST, request_id, "step", ts_ns=began_ns)

    def produced(self, outputs, stamp):
        """Counts a step's outputs before they leave the engine, at vLLM's own time. Returns the number of their tokens."""
        ts_ns = None  # computed only if needed, because most steps record no event here
        verbose = is_enabled("verbose")

        def handle(output, tokens):
            nonlocal ts_ns
            ts_ns = ts_ns or from_monotonic(stamp) or now_ns()
            one = self._find(output.request_id)
            if one is None:
                return
            if tokens:
                if not one.output_tokens:
                    self._record_first_token(one, output, ts_ns)
                one.add(tokens)
            if verbose:
                one.span.instant("request.output", level="verbose", ts_ns=ts_ns, tokens=tokens)
            if output.finish_reason is not None:
                self.finished(output.request_id, reason(output.finish_reason), ts_ns)

        return self._outputs.count(outputs, self._open, handle, verbose)

    def _record_first_token(self, one, output, ts_ns):
        """Records a request's first token."""
        one.span.instant("request.first_token", ts_ns=ts_ns)
        stats = getattr(output, "prefill_stats", None)
        if stats is not None:
            one.cached_tokens = stats.num_cached_tokens

    def finished(self, request_id, why, ts_ns=None):
        """Ends the request. Repeated calls do nothing."""
        one = self._remove(request_id)
        if one is None:
            return
        counts = one.counts()
        one.span.instant("request.finished", ts_ns=ts_ns, reason=why, **counts)
        del counts["prompt_tokens"]  # the span has had it since it began
        one.span.end(reason=why, **counts)

    def all_finished(self, why):
        """Ends all requests."""
        for request_id in list(self._open):
            self.finished(request_id, why)

    def end_unknown(self, alive):
        """Ends requests that finished while recording was off."""
        for request_id in [one for one in self._open if one not in alive]:
            self._remove(request_id).span.end(reason="unknown")

    def _remove(self, request_id):
        self._outputs.forget()
        return self._open.pop(request_id, None)


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
