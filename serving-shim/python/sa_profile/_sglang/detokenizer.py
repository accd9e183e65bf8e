"""The detokenizer, a process of its own: each step's output tokens become text."""

from .. import flow
from .._sa_profile import is_enabled, open_span
from .._engine import REQUEST
from .._hooks.chain import chain, find_class
from .processes import hook_target, run_target
from .requests import is_health_check

MAX_REQUESTS = 1 << 16  # as many as SGLang's detokenizer has states for

_seen: set[str] = set()  # ids of requests with an output that are not finished


def hook(module):
    """Hooks the class of `sglang.srt.managers.detokenizer_manager`."""
    manager = find_class(module, "DetokenizerManager")
    if manager is None:
        return
    chain(manager, "handle_batch_token_id_out", decode)
    hook_target(module, "run_detokenizer_process", run_detokenizer_process)


def run_detokenizer_process(*args, **kwargs):
    """Runs SGLang's detokenizer, with the plugin."""
    return run_target("sglang.srt.managers.detokenizer_manager", "run_detokenizer_process", args, kwargs)


def decode(_manager, recv_obj, *_args, **_kwargs):
    """Observes a step's outputs being turned into text."""
    if not is_enabled():
        if _seen:
            _seen.clear()
        return None
    ids = recv_obj.rids
    more = dict(request_ids=list(ids)) if is_enabled("verbose") else {}
    opened = open_span("DetokenizerManager.decode_outputs", cat="serving", outputs=len(ids), **more)
    if not _seen.issuperset(ids) or any(recv_obj.finished_reasons):
        _link(ids, recv_obj.finished_reasons)
    return opened.leave


def _link(ids, finish_reasons):
    """Records a step of the flow of each request that has its first or its last output. Beyond `MAX_REQUESTS`, first outputs have none."""
    for request_id, reason in zip(ids, finish_reasons):
        is_first, is_last = request_id not in _seen and len(_seen) < MAX_REQUESTS, reason is not None
        if is_last:
            _seen.discard(request_id)
        elif is_first:
            _seen.add(request_id)
        if (is_first or is_last) and not is_health_check(request_id):
            flow(REQUEST, request_id, "step")
