"""One line in the server's log: whether it records, where, and how to begin where it does not yet."""

from .. import directory, levels, set_process_name
from .._hooks.chain import argument, chain_if_there
from .._hooks.warnings import warn_once
from .names import is_first_child, title

FIRST = (None, "APIServer", "APIServer_0")  # of several API servers, the one that speaks for all
OF_SUPERVISOR = "APIServer_DP"  # begins the names of a supervisor's servers; on a node that is not the first, those begin at another number


def hook(module):
    """Hooks the class of `vllm.engine.arg_utils` of which each node's main process is made."""
    chain_if_there(getattr(module, "EngineArgs", None), "create_engine_config", configure)


def configure(_arguments, *args, **kwargs):
    """A node without an API server begins here; it has engines or workers only."""
    if not argument(args, kwargs, 1, "headless"):
        return None
    return lambda _result, error: announce() if error is None else None


def announce():
    """Says it, once in a server; and gives the process its name, which its first request is too late for."""
    name = title()
    if name:
        set_process_name(name)
    folder = directory()
    if folder is None or not _speaks(name):
        return
    on = ", ".join(sorted(levels()))
    if on:
        warn_once(f"recording to {folder}, levels {on}")
    else:
        warn_once(f"recording to {folder} is paused: sa-profile start {folder} begins")


def _speaks(name):
    return name in FIRST or (name.startswith(OF_SUPERVISOR) and is_first_child())
