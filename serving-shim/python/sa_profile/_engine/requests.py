"""The lifecycle of each request in the engine: queued, scheduled, preempted, first token, finished; and its counts."""

from .. import flow, now_ns, request
from .._sa_profile import OutputCounter, OutputCounts, is_enabled
from . import REQUEST


class EngineRequest(OutputCounts):
    """One request in the engine."""

    __slots__ = ("span", "is_queued", "is_running", "prompt_tokens", "cached_tokens", "preemptions")

    def __new__(cls, _span, _prompt_tokens, output_tokens=0):
        return super().__new__(cls, output_tokens)

    def __init__(self, span, prompt_tokens, _output_tokens=0):
        self.span = span
        self.is_queued = False
        self.is_running = False
        self.prompt_tokens = prompt_tokens
        self.cached_tokens = 0
        self.preemptions = 0

    def counts(self):
        """Returns the request's counts as args."""
        names = ("prompt_tokens", "cached_tokens", "output_tokens", "output_steps", "preemptions")
        return {name: getattr(self, name) for name in names}


class EngineRequests:
    """The requests of one engine, by the ids that all of its processes use.

    Times are in ns of the recorder. If a caller passes `None`, because the engine keeps no stamp, the event gets the current time.
    A subclass maps an engine's own objects:

        def joined(self, request_id): ...          # (prompt tokens, output tokens so far) of a request that arrived while recording was off, or None
        def first_token(self, outputs, at, one, ts_ns): ...   # (ts_ns, args of the instant); may set one.cached_tokens
        def last_output(self, outputs, at, finish_reason, ts_ns): ...  # (the API's name for the reason, ts_ns)
    """

    def __init__(self, layout):
        self.open = {}
        self.running = 0  # number of open requests that are in a batch
        self._outputs = OutputCounter(layout)
        self.step_outputs = None  # the outputs that are being counted
        self._step_ns = None
        self._is_verbose = False

    def __len__(self):
        return len(self.open)

    def arrived(self, request_id, prompt_tokens, **args):
        """Opens the span of a request that reaches the engine. Does nothing if it is open already, for example for a further chunk of a streamed input."""
        if request_id not in self.open:
            span = request(request_id, name="request", cat="request", prompt_tokens=prompt_tokens, **args)
            self.open[request_id] = EngineRequest(span, prompt_tokens)

    def queued(self, request_id, ts_ns=None):
        """Records that the engine has queued the request, once. Returns the request if this is the first time, otherwise `None`."""
        one = self.open.get(request_id)
        if one is None or one.is_queued:
            return None
        one.is_queued = True
        one.span.instant("request.queued", ts_ns=ts_ns)
        return one

    def find(self, request_id):
        """Returns an open request. Opens it if it arrived while recording was off. Returns `None` if it is unknown."""
        one = self.open.get(request_id)
        if one is None and is_enabled():
            counts = self.joined(request_id)
            if counts is not None:
                span = request(request_id, name="request", cat="request", prompt_tokens=counts[0], joined=True)
                one = self.open[request_id] = EngineRequest(span, *counts)
        return one

    def _set_running(self, one, is_running):
        self.running += is_running - one.is_running
        one.is_running = is_running

    def preempted(self, request_id, ts_ns=None):
        """Records that a running request has lost its memory and waits again."""
        one = self.find(request_id)
        if one is not None:
            self._set_running(one, False)
            one.preemptions += 1
            one.span.instant("request.preempted", ts_ns=ts_ns, output_tokens=one.output_tokens)

    def started(self, request_id, ts_ns=None, flow_ns=None, cached_tokens=0, **args):
        """Records that a request enters a batch, for the first time or after a preemption. `flow_ns` is a time in the span in which that is decided."""
        one = self.find(request_id)
        if one is None:
            return
        name = "request.resumed" if one.preemptions else "request.scheduled"
        if not one.preemptions:  # after a preemption, the request's own tokens count as cache hits
            one.cached_tokens = cached_tokens
        self._set_running(one, True)
        one.span.instant(name, ts_ns=ts_ns, cached_tokens=cached_tokens, **args)
        flow(REQUEST, request_id, "step", ts_ns=flow_ns)

    def produced(self, outputs, ts_ns=None):
        """Counts a step's outputs, and records first tokens and ends. Returns the number of their tokens."""
        self.step_outputs, self._step_ns = outputs, ts_ns
        self._is_verbose = is_enabled("verbose")
        try:
            return self._outputs.count(outputs, self.open, self._handle, self._is_verbose)
        finally:
            self.step_outputs = None

    def _handle(self, at, request_id, tokens, finish_reason):
        """Handles an output that is not simply counted."""
        ts_ns = self._step_ns = self._step_ns or now_ns()
        was_open = request_id in self.open
        one = self.find(request_id)
        if one is None:
            return
        outputs = self.step_outputs
        if tokens and (was_open or not one.output_tokens):  # otherwise `joined` has counted them
            if not one.output_tokens:
                first_ns, args = self.first_token(outputs, at, one, ts_ns)
                one.span.instant("request.first_token", ts_ns=first_ns, **args)
            one.add(tokens)
        if tokens or not was_open:
            self._set_running(one, True)
        if self._is_verbose:
            one.span.instant("request.output", level="verbose", ts_ns=ts_ns, tokens=tokens)
        if finish_reason is not None:
            self.finished(request_id, *self.last_output(outputs, at, finish_reason, ts_ns))

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
        for request_id in list(self.open):
            self.finished(request_id, why)

    def end_unknown(self, alive):
        """Ends requests that finished while recording was off."""
        for request_id in [one for one in self.open if one not in alive]:
            self._remove(request_id).span.end(reason="unknown")

    def _remove(self, request_id):
        self._outputs.forget()
        one = self.open.pop(request_id, None)
        if one is not None:
            self._set_running(one, False)
        return one
