"""Decides which of vLLM's processes announces the recording in the server's log."""

from .. import set_process_name
from .._engine import processes
from .._hooks.chain import argument, chain_if_there
from .names import is_first_child, title

ANNOUNCERS = (None, "APIServer", "APIServer_0")  # titles of the one API server that writes the line
SUPERVISED_PREFIX = "APIServer_DP"  # prefix of the titles of a supervisor's servers; on nodes other than the first, their numbers do not start at 0


def hook(module):
    """Hooks the class of `vllm.engine.arg_utils` from which each node's main process is built."""
    chain_if_there(getattr(module, "EngineArgs", None), "create_engine_config", configure)


def configure(_arguments, *args, **kwargs):
    """Announces the recording on a node without API servers, which has only engines or workers and starts here."""
    if not argument(args, kwargs, 1, "headless"):
        return None
    return lambda _result, error: announce() if error is None else None


def announce():
    """Writes the line once per server. Also names the process, because its first request would be too late for that."""
    name = title()
    if name:
        set_process_name(name)
    if _is_announcer(name):
        processes.announce()


def _is_announcer(name):
    return name in ANNOUNCERS or (name.startswith(SUPERVISED_PREFIX) and is_first_child())
