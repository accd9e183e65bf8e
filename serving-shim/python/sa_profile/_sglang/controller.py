"""The controller of data parallel ranks, a process of its own: it passes each request on to a rank."""

from .. import flow
from .._sa_profile import is_enabled, open_span
from .._engine import REQUEST
from .._hooks.chain import argument, chain_if_there
from .processes import hook_target, run_target
from .requests import is_health_check


def hook(module):
    """Hooks the class of `sglang.srt.managers.data_parallel_controller`."""
    chain_if_there(getattr(module, "DataParallelController", None), "dispatching_with_trace", dispatch)
    hook_target(module, "run_data_parallel_controller_process", run_data_parallel_controller_process)


def run_data_parallel_controller_process(*args, **kwargs):
    """Runs SGLang's controller, with the plugin."""
    return run_target("sglang.srt.managers.data_parallel_controller", "run_data_parallel_controller_process", args, kwargs)


def dispatch(_controller, *args, **kwargs):
    """Observes a request being passed on to a rank."""
    request_id = getattr(argument(args, kwargs, 0, "req"), "rid", None)
    if request_id is None or not is_enabled() or is_health_check(request_id):
        return None
    opened = open_span("DataParallelController.dispatch", cat="serving", request_id=request_id)
    flow(REQUEST, request_id, "step")
    return opened.leave
