"""The API server's side: requests that arrive and get their internal ids, outputs that go out."""

import asyncio
import itertools
import weakref

from .. import async_span, duration, flow, instant, now_ns, request, span
from .._sa_profile import Outputs, Tally, attach, is_enabled, open_span
from .._hooks.chain import argument, chain, chain_if_there, inside
from .._hooks.flows import REQUEST
from .._hooks.warnings import quietly, warn_once
from .._http import asgi
from .._http.awake import AWAKE
from .._http.ticks import TICKS
from . import stamps
from .announcement import announce
from .parameters import asked
from .requests import reason
from .sending import turn

RECORD = span("StatLoggerManager.record", cat="serving")


class FrontRequest(Tally):
    """One request, by its internal id, that the process waits for."""

    __slots__ = ("span", "external_id", "number", "cached_tokens")

    def __new__(cls, _span, _external_id):
        return super().__new__(cls)

    def __init__(self, span, external_id):
        self.span = span
        self.external_id = external_id
        self.number = next(_numbers)
        self.cached_tokens = None

    def end(self, request_id, why, ts_ns, **more):
        """The request is over. The flow ends in the span that began last before this time."""
        flow(REQUEST, request_id, "end", ts_ns=ts_ns)
        self.span.end(reason=why, output_tokens=self.output_tokens, cached_tokens=self.cached_tokens, **more)


_numbers = itertools.count()
_open: dict[str, FrontRequest] = {}  # by internal id; only the event loop's thread touches it
_outputs = Outputs()
_waits: dict[weakref.ref, object] = {}  # the spans of generators that somebody has


def _take(request_id):
    """The request, which is open no more; `None` if it was not."""
    _outputs.forget()
    return _open.pop(request_id, None)


def _class(module, name):
    found = getattr(module, name, None)
    if found is None:
        warn_once(f"this vLLM has no {module.__name__}.{name}: its spans are missing")
    return found


def hook_client(module):
    """Hooks the class of `vllm.v1.engine.async_llm`."""
    client = _class(module, "AsyncLLM")
    if client is None:
        return
    from . import control

    chain(client, "__init__", construct)
    chain(client, "add_request", add_request)
    chain(client, "generate", generate)
    chain(client, "encode", generate)
    chain_if_there(client, "_record_stats", RECORD, inside)  # before 0.10
    control.hook(client)


def hook_offline(module):
    """Hooks the class of `vllm.v1.engine.llm_engine`; its requests go through the same processors."""
    engine = _class(module, "LLMEngine")
    if engine is not None:
        chain(engine, "__init__", construct)


def hook_input(module):
    """Hooks the class of `vllm.v1.engine.input_processor`."""
    _hook_input(_class(module, "InputProcessor"))


def hook_older_input(module):
    """Hooks what it was before 0.13, the class of `vllm.v1.engine.processor`."""
    _hook_input(getattr(module, "Processor", None))


def _hook_input(processor):
    chain_if_there(processor, "process_inputs", process_inputs)
    chain_if_there(processor, "assign_request_id", assign_request_id)


def hook_statistics(module):
    """Hooks the class of `vllm.v1.metrics.loggers` that is told of each step before its outputs can be sent."""
    loggers = getattr(module, "StatLoggerManager", None)
    chain_if_there(loggers, "record", RECORD, inside)


def hook_output(module):
    """Hooks the class of `vllm.v1.engine.output_processor`."""
    processor = _class(module, "OutputProcessor")
    if processor is not None:
        chain(processor, "add_request", admit)
        chain(processor, "process_outputs", process_outputs)
        chain(processor, "abort_requests", abort_requests)
        chain_if_there(processor, "propagate_error", propagate_error)


def construct(client, *_args, **_kwargs):
    """The engine is started. It is the run's first event, so that this process is its main one and not a worker."""
    attach()  # a server that begins paused must be there to be switched on
    quietly(announce)
    if not is_enabled():
        return None
    return open_span(f"{type(client).__name__}.__init__", cat="serving").leave


def add_request(_client, *args, **kwargs):
    """A coroutine: the prompt becomes a request and is sent to the engine."""
    if not is_enabled():
        return None
    external_id = argument(args, kwargs, 0, "request_id")
    opened = open_span("AsyncLLM.add_request", cat="serving", external_id=external_id)
    since = next(_numbers)

    def leave(_result, error):
        if error is not None:  # a client may have sent the id of another request of its own
            _end_all([id for id, one in _open.items() if one.external_id == external_id and one.number > since], error)
        opened.close(error)

    return leave


def generate(_client, *args, **kwargs):
    """An async generator: from its call until nobody waits for it any more, which is when it is given back. So its items, one for each token, pass through nothing of ours."""
    if not is_enabled():
        return None
    external_id = argument(args, kwargs, 2, "request_id")

    def leave(generator, error):
        if error is None:
            reference = weakref.ref(generator, _left)
            _waits[reference] = async_span("AsyncLLM.generate", cat="serving", external_id=external_id)

    return leave


def _left(generator):
    opened = _waits.pop(generator, None)
    if opened is not None:
        quietly(opened.end)


def _end_all(request_ids, error):
    """No output and no abort comes for these."""
    why = "abort" if isinstance(error, asyncio.CancelledError) else "error"
    for request_id in request_ids:
        _take(request_id).end(request_id, why, now_ns(), error=type(error).__name__)


def process_inputs(processor, *_args, **_kwargs):
    """The engine's request is made of what the client sent. Where nobody gives it an internal id later, it arrives with it."""
    if not is_enabled():
        return None
    opened = open_span("InputProcessor.process_inputs", cat="serving")
    assigns = hasattr(processor, "assign_request_id")

    def leave(made, error):
        opened.close(error)
        if error is None and not assigns:
            new = made[1] if isinstance(made, tuple) else made  # before 0.13, beside the prompt
            instant("request.arrived", cat="request", request_id=new.request_id, external_id=new.request_id)

    return leave


def assign_request_id(*args, **kwargs):
    """A request gets its internal id; both are known when the call returns."""
    if not is_enabled():
        return None
    new = argument(args, kwargs, len(args) - 1, "request")

    def leave(_result, error):
        if error is None:
            external_id = getattr(new, "external_req_id", None)
            instant("request.arrived", cat="request", request_id=new.request_id, external_id=external_id)

    return leave


def admit(_processor, *args, **kwargs):
    """The process begins to wait for a request's outputs: where its flow starts."""
    if not is_enabled():
        return None
    new = argument(args, kwargs, 0, "request")
    parent = argument(args, kwargs, 2, "parent_req")
    # Where a request has no internal id, those of several answers are made of the one that was asked for.
    external_id = getattr(new, "external_req_id", None) or getattr(parent, "request_id", None) or new.request_id
    prompt = getattr(new, "prompt_token_ids", None)
    args = dict(request_id=new.request_id, external_id=external_id, prompt_tokens=None if prompt is None else len(prompt))
    opened = open_span("OutputProcessor.add_request", cat="serving", **args)
    began_ns = now_ns()
    is_new = new.request_id not in _open  # else another chunk of a streamed input
    if is_new:
        del args["request_id"]
        quietly(_preprocessed, new, external_id)
        args.update(quietly(asked, new, parent) or {})
        _open[new.request_id] = FrontRequest(request(new.request_id, **args), external_id)
        asgi.link(new.request_id, external_id)

    def leave(_result, error):
        if error is not None and is_new and new.request_id in _open:
            _take(new.request_id).end(new.request_id, "error", began_ns)
        opened.close(error)

    return leave


def _preprocessed(new, external_id):
    """From vLLM's own time of the arrival up to now: its templates, its tokeniser with the wait for it, and its checks. Its TTFT and E2E begin there."""
    since_ns = stamps.of_wall(getattr(new, "arrival_time", None))
    if since_ns is not None:
        ids = dict(request_id=new.request_id, external_id=external_id)
        duration("request.preprocess", cat="request", start_ns=since_ns, dur_ns=now_ns() - since_ns, **ids)


def process_outputs(_processor, *args, **kwargs):
    """A step's outputs are turned to text and handed to those who wait."""
    if not is_enabled() and not _open:
        return None
    outputs = argument(args, kwargs, 0, "engine_core_outputs")
    # Its metrics count what a step brought at this time.
    stats = argument(args, kwargs, 2, "iteration_stats")
    ts_ns = stamps.of_wall(getattr(stats, "iteration_timestamp", None)) or now_ns()
    since = TICKS.glance()
    AWAKE.look()
    sending = quietly(turn, len(outputs))
    opened = open_span("OutputProcessor.process_outputs", cat="serving", outputs=len(outputs))
    began_ns = now_ns()

    def leave(result, error):
        opened.returned()
        facts = {}
        try:
            facts = dict(tokens=_all_out(outputs, getattr(result, "reqs_to_abort", ()), ts_ns, began_ns))
        finally:
            opened.close(error, facts)
            TICKS.worked(since)
            if sending is not None:
                sending.woken()

    return leave


def _all_out(outputs, stopped, ts_ns, began_ns):
    """Takes a step's outputs; `stopped` are the ids of those that a stop text has ended. Returns how many tokens there are."""

    def look(output, tokens):
        one = _open.get(output.request_id)
        if one is None:
            return
        if tokens:
            if not one.output_tokens:
                _first(one, output, ts_ns)
            one.add(tokens)
        if output.finish_reason is not None:
            _answered(output.request_id, reason(output.finish_reason), ts_ns, began_ns)

    all_tokens = _outputs.count(outputs, _open, look)
    for request_id in stopped:
        _answered(request_id, "stop", ts_ns, began_ns)
    return all_tokens


def _first(one, output, ts_ns):
    one.span.instant("request.first_token", ts_ns=ts_ns)
    stats = getattr(output, "prefill_stats", None)
    if stats is not None:
        one.cached_tokens = stats.num_cached_tokens
    else:  # older versions: each output has it
        one.cached_tokens = getattr(output, "num_cached_tokens", one.cached_tokens)


def _answered(request_id, why, ts_ns, began_ns):
    """The last output of a request has come."""
    one = _take(request_id)
    if one is not None:
        one.span.instant("request.answered", ts_ns=ts_ns, reason=why)
        one.end(request_id, why, began_ns)


def abort_requests(_processor, *_args, **_kwargs):
    """Requests are given up: their client has gone, or somebody asked for it."""
    if not _open:
        return None
    opened = open_span("OutputProcessor.abort_requests", cat="serving")
    began_ns = now_ns()

    def leave(result, error):
        opened.returned()
        try:
            for request_id in result or ():
                one = _take(request_id)
                if one is not None:
                    one.end(request_id, "abort", began_ns)
        finally:
            opened.close(error)

    return leave


def propagate_error(_processor, *args, **kwargs):
    """The engine is dead: all who wait are told."""
    if not _open:
        return None
    opened = open_span("OutputProcessor.propagate_error", cat="serving")
    quietly(_end_all, list(_open), argument(args, kwargs, 0, "e"))
    return lambda _result, error: opened.close(error)
