"""Makes /start_profile and /stop_profile, which SGLang always has, switch the run's recording too.

The hooks are in the scheduler, because it knows when a profile with `start_step` begins. If a number of steps is requested, SGLang's own end of the profile is ignored:
other processes begin to record some steps later, and each run gets that many steps.
"""

from .._engine import profile_routes
from .._hooks.chain import argument, chain_if_there
from .ranks import is_first

MODULES = ("sglang.srt.managers.scheduler_components.profiler_manager", "sglang.srt.managers.scheduler_profiler_mixin")
OWNERS = ("SchedulerProfilerManager", "SchedulerProfilerMixin")
STEP = "Scheduler.run_batch"

_steps = None  # number of steps of the next profile


def hook(module):
    """Hooks the class that starts and stops SGLang's profiler, which older versions mix into the scheduler."""
    for owner in (getattr(module, name, None) for name in OWNERS):
        chain_if_there(owner, "_init_profile", prepare) or chain_if_there(owner, "init_profile", prepare)
        chain_if_there(owner, "_start_profile", start) or chain_if_there(owner, "start_profile", start)
        chain_if_there(owner, "_profile", request) or chain_if_there(owner, "profile", request)


def prepare(_owner, *args, **kwargs):
    """Observes the options of a profile."""
    global _steps
    _steps = argument(args, kwargs, 2, "num_steps") or None


def start(owner, *_args, **_kwargs):
    """Observes the start of SGLang's profiler. One rank switches the recording of all."""
    return _switch if is_first(owner) else None


def _switch(result, error):
    if error is None and getattr(result, "success", True):
        profile_routes.started(STEP, _steps)


def request(owner, *args, **kwargs):
    """Observes a request of the routes. The request to stop also ends a recording that waits for further steps."""
    kind = getattr(argument(args, kwargs, 0, "recv_req"), "req_type", None)
    if getattr(kind, "name", None) != "STOP_PROFILE" or not is_first(owner):
        return None
    return lambda _result, error: profile_routes.stopped() if error is None else None
