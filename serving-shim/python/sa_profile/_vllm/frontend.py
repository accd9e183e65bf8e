"""The API server's part: requests that arrive and get their internal ids, and outputs that are sent."""

from .. import now_ns, span
from .._sa_profile import attach, from_monotonic, from_wall_clock, is_enabled, last_request_number, open_span
from .._engine.front import FrontRequests, end_all, watch_generator
from .._engine.sending import next_turn
from .._hooks.chain import argument, chain, chain_details, chain_if_there, chain_in_detail, find_class, inside
from .._hooks.warnings import quietly
from .._http import asgi
from .announcement import announce
from .requests import LAYOUT, reason
from .settings import record_server

RECORD = span("StatLoggerManager.record", cat="serving", level="verbose")


class Frontend:
    """What the frontend's requests need to know of vLLM's outputs."""

    @staticmethod
    def reason(finish_reason):
        """Returns the API's name for a finish reason."""
        return reason(finish_reason)

    @staticmethod
    def cached_tokens(outputs, at):
        """Returns the number of cached prompt tokens, which vLLM sends with a request's first output. Older versions have it in each output."""
        stats = getattr(outputs[at], "prefill_stats", None)
        return getattr(outputs[at], "num_cached_tokens", None) if stats is None else stats.num_cached_tokens


# Only the event loop's thread uses it.
_front = FrontRequests(LAYOUT, Frontend, "OutputProcessor.add_request", "OutputProcessor.process_outputs", "reqs_to_abort")


def hook_client(module):
    """Hooks the class of `vllm.v1.engine.async_llm`."""
    client = find_class(module, "AsyncLLM")
    if client is None:
        return
    from . import control

    chain(client, "__init__", construct_server)
    chain(client, "add_request", add_request)
    for name in ("generate", "encode"):
        chain_in_detail(client, name, generate)
    chain_in_detail(client, "_record_stats", RECORD, inside)  # before 0.10
    control.hook(client)


def hook_offline(module):
    """Hooks the class of `vllm.v1.engine.llm_engine`. Its requests go through the same processors."""
    engine = find_class(module, "LLMEngine")
    if engine is not None:
        chain(engine, "__init__", construct)


def hook_input(module):
    """Hooks the class of `vllm.v1.engine.input_processor`."""
    _hook_input(find_class(module, "InputProcessor"))


def hook_older_input(module):
    """Hooks the class of `vllm.v1.engine.processor`, which `InputProcessor` was before 0.13."""
    _hook_input(getattr(module, "Processor", None))


def _hook_input(processor):
    chain_in_detail(processor, "process_inputs", span("InputProcessor.process_inputs", cat="serving", level="verbose"), inside)


def hook_statistics(module):
    """Hooks the class of `vllm.v1.metrics.loggers` that records each step before its outputs can be sent."""
    loggers = getattr(module, "StatLoggerManager", None)
    chain_in_detail(loggers, "record", RECORD, inside)


def hook_output(module):
    """Hooks the class of `vllm.v1.engine.output_processor`."""
    processor = find_class(module, "OutputProcessor")
    if processor is not None:
        chain(processor, "add_request", admit)
        chain(processor, "process_outputs", process_outputs)
        chain(processor, "abort_requests", abort_requests)
        chain_if_there(processor, "propagate_error", propagate_error)


def construct(client, *_args, **_kwargs):
    """Observes the start of the engine. This is the run's first event, so that this process, and not a worker, becomes the run's main process."""
    attach()  # a paused process must already have a recorder, so that it can be switched on
    quietly(announce)
    if not is_enabled():
        return None
    return open_span(f"{type(client).__name__}.__init__", cat="serving").leave


def construct_server(client, *args, **kwargs):
    """Opens a span for the constructor in an API server, and records the settings."""
    leave = construct(client)
    quietly(record_server, argument(args, kwargs, 0, "vllm_config"))
    return leave


def add_request(_client, request_id, *_args, **_kwargs):
    """Observes the coroutine in which a prompt becomes a request and is sent to the engine."""
    if not is_enabled():
        return None
    opened = open_span("AsyncLLM.add_request", cat="serving", level="verbose", external_id=request_id) if is_enabled("verbose") else None
    since = last_request_number()

    def leave(_result, error):
        if error is not None:  # only this call's requests, because a client may have sent the id of another request
            end_all(_front, [id for id, one in _front.open.items() if one.external_id == request_id and one.number > since], error)
        if opened is not None:
            opened.close(error)

    return leave


def generate(_client, *args, **kwargs):
    """Observes the generator of a request's outputs at level `verbose`."""
    if not is_enabled("verbose"):
        return None
    external_id = argument(args, kwargs, 2, "request_id")

    def leave(generator, error):
        if error is None:
            watch_generator(generator, "AsyncLLM.generate", external_id=external_id)

    return leave


def admit(_processor, request, _prompt=None, parent_req=None, *_args, **_kwargs):
    """Observes the process starting to wait for a request's outputs, where its flow starts."""
    if is_enabled("verbose"):
        chain_details()
    # Without internal ids, vLLM derives the ids of several answers from the id of the client's request.
    external_id = getattr(request, "external_req_id", None) or getattr(parent_req, "request_id", None) or request.request_id
    prompt = getattr(request, "prompt_token_ids", None)
    return _front.admit(
        request.request_id, external_id, None if prompt is None else len(prompt), from_wall_clock(getattr(request, "arrival_time", None)),
        lambda: _options(request, parent_req), asgi.current(),
    )


def _options(request, parent):
    """Returns the client's options as args, as far as they affect how the request is served."""
    params = getattr(request, "sampling_params", None)
    samples = getattr(getattr(parent, "sampling_params", None), "n", None)
    structured = getattr(params, "structured_outputs", None) or getattr(params, "guided_decoding", None)  # the second in older versions
    options = dict(
        max_tokens=getattr(params, "max_tokens", None), n=samples if samples and samples > 1 else None,
        structured=None if structured is None else True, priority=getattr(request, "priority", None) or None,
        lora=getattr(getattr(request, "lora_request", None), "lora_name", None),
    )
    return {name: value for name, value in options.items() if value is not None}


def process_outputs(_processor, engine_core_outputs, engine_core_timestamp=None, iteration_stats=None, *_args, **_kwargs):
    """Observes a step's outputs being turned into text and handed to the tasks that wait for them."""
    # vLLM's metrics use the first time for the step's outputs, and the second for its time between tokens.
    received_ns = None if iteration_stats is None else from_wall_clock(getattr(iteration_stats, "iteration_timestamp", None))
    leave = _front.step(engine_core_outputs, received_ns, from_monotonic(engine_core_timestamp))
    if leave is None or not is_enabled("verbose"):
        return leave
    sending = quietly(next_turn, len(engine_core_outputs))
    if sending is None:
        return leave

    def leave_and_send(result, error):
        try:
            leave(result, error)
        finally:
            sending.schedule_end()

    return leave_and_send


def abort_requests(_processor, *_args, **_kwargs):
    """Observes requests being aborted, because their client has disconnected or on command."""
    if not _front.open:
        return None
    opened = open_span("OutputProcessor.abort_requests", cat="serving")
    began_ns = now_ns()

    def leave(result, error):
        opened.set_end()
        try:
            for request_id in result or ():
                _front.end(request_id, "abort", began_ns)
        finally:
            opened.close(error)

    return leave


def propagate_error(_processor, *args, **kwargs):
    """Observes the end of all waiting requests after the engine has died."""
    if not _front.open:
        return None
    opened = open_span("OutputProcessor.propagate_error", cat="serving")
    quietly(end_all, _front, list(_front.open), argument(args, kwargs, 0, "e"))
    return lambda _result, error: opened.close(error)
