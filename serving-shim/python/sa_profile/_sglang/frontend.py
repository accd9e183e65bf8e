"""The tokenizer manager, in the process that serves HTTP: requests that arrive and are sent to the scheduler, and outputs that come back."""

from .. import now_ns
from .._sa_profile import OutputLayout, is_enabled, open_span
from .._engine import processes
from .._engine.front import FrontRequests, watch_generator
from .._hooks.chain import argument, chain, chain_details, chain_if_there, chain_in_detail, find_class
from .._hooks.warnings import quietly
from .._http import asgi
from .requests import is_health_check, reason, stamp_ns
from .settings import record_server

LAYOUT = OutputLayout("rids", "completion_tokens", "finished_reasons", columns=True, cumulative=True)  # of SGLang's `BatchStrOutput`
MOMENTS = {"request.first_token": "first_token_time", "request.answered": "finished_time"}


class Frontend:
    """What the frontend's requests need to know of SGLang's outputs and stamps."""

    @staticmethod
    def reason(finish_reason):
        """Returns the API's name for a finish reason."""
        return reason(finish_reason)

    @staticmethod
    def cached_tokens(outputs, at):
        """Returns the number of cached prompt tokens, which SGLang sends with each output."""
        return outputs.cached_tokens[at]

    @staticmethod
    def moment(state, name):
        """Returns SGLang's own time of a moment of a request, from which its metrics are computed. Before 0.5.10 the stamps are in the state itself."""
        return stamp_ns(getattr(state, "time_stats", state), MOMENTS[name])


_front = FrontRequests(LAYOUT, Frontend, "TokenizerManager.send_request", "TokenizerManager.process_outputs")


def hook(module):
    """Hooks the class of `sglang.srt.managers.tokenizer_manager`."""
    manager = find_class(module, "TokenizerManager")
    if manager is None:
        return
    chain(manager, "__init__", construct)
    chain(manager, "_send_one_request", send_one)
    chain_if_there(manager, "_send_batch_request", send_batch)
    chain(manager, "_handle_batch_output", process_outputs)
    chain(manager, "_handle_abort_req", abort)
    chain_in_detail(manager, "_tokenize_one_request", tokenize)
    chain_in_detail(manager, "generate_request", generate)


def construct(_manager, *args, **kwargs):
    """Observes the construction of the tokenizer manager, announces the recording, and records the settings."""
    processes.begin(None)
    quietly(processes.announce)
    opened = open_span("TokenizerManager.__init__", cat="serving") if is_enabled() else None
    quietly(record_server, argument(args, kwargs, 0, "server_args"))
    return None if opened is None else opened.leave


def send_one(manager, *args, **kwargs):
    """Observes a request being sent to the scheduler."""
    return _admit(manager, _tokenized(args, kwargs, "tokenized_obj"))


def send_batch(manager, *args, **kwargs):
    """Observes a client's batch being sent to the scheduler in one message."""
    found = [_admit(manager, one) for one in _tokenized(args, kwargs, "tokenized_objs")]
    found = [leave for leave in found if leave is not None]

    def leave_all(result, error):
        for leave in found:
            quietly(leave, result, error)

    return leave_all if found else None


def _tokenized(args, kwargs, name):
    """Returns the argument with tokens. Before 0.5.10 it came after the client's request."""
    return kwargs[name] if name in kwargs else args[0] if len(args) == 1 else args[1]


def _admit(manager, new):
    if not is_enabled() or is_health_check(new.rid):
        return None
    chain_details()
    state = manager.rid_to_state.get(new.rid)
    stats = getattr(state, "time_stats", state)
    prompt = getattr(new, "input_ids", None)
    leave = _front.admit(
        new.rid, new.rid, None if prompt is None else len(prompt), stamp_ns(stats, "created_time"),
        lambda: _options(manager, new), asgi.current(), state,
    )
    one = _front.open.get(new.rid)
    if one is not None:
        quietly(_record_dispatch, one, stats)
    return leave


def _record_dispatch(one, stats):
    """Records when the prompt became tokens, and that it leaves for the scheduler."""
    tokenized_ns = stamp_ns(stats, "tokenize_finish_time")
    if tokenized_ns is not None:
        one.instant("request.tokenized", tokenized_ns)
    one.instant("request.dispatched", now_ns())


def _options(manager, new):
    """Returns the client's options as args, as far as they affect how the request is served."""
    params = getattr(new, "sampling_params", None)
    structured = any(getattr(params, name, None) for name in ("json_schema", "regex", "ebnf", "structural_tag"))
    options = dict(
        model=getattr(manager, "served_model_name", None), max_tokens=getattr(params, "max_new_tokens", None), structured=structured or None,
        priority=getattr(new, "priority", None), lora=getattr(new, "lora_id", None),
    )
    return {name: value for name, value in options.items() if value is not None}


def process_outputs(_manager, recv_obj, *_args, **_kwargs):
    """Observes a step's outputs being handed to the tasks that wait for them."""
    return _front.step(recv_obj)


def abort(_manager, *args, **kwargs):
    """Observes the end of a request that was aborted before it had a last output."""
    request_id = getattr(argument(args, kwargs, 0, "recv_obj"), "rid", None)
    if request_id not in _front.open:
        return None
    return lambda _result, _error: _front.end(request_id, "abort", now_ns())


def tokenize(_manager, *args, **kwargs):
    """Observes a prompt becoming tokens, at level `verbose`."""
    if not is_enabled("verbose"):
        return None
    request_id = getattr(argument(args, kwargs, 0, "obj"), "rid", None)
    return open_span("TokenizerManager.tokenize_one_request", cat="render", level="verbose", request_id=request_id).leave


def generate(_manager, *args, **kwargs):
    """Observes the generator of a client's request at level `verbose`. Its id is known only once it runs."""
    if not is_enabled("verbose"):
        return None
    obj = argument(args, kwargs, 0, "obj")

    def leave(generator, error):
        if error is None:
            watch_generator(generator, "TokenizerManager.generate_request", request_id=getattr(obj, "rid", None))

    return leave
