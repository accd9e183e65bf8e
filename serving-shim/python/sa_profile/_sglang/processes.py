"""Names of processes, as SGLang titles them (`sglang::scheduler_TP0`, `sglang::detokenizer`), and the plugin in children that SGLang starts without it."""

import multiprocessing
import sys
from importlib import import_module
from typing import Any

from .._engine import processes
from .._hooks.chain import argument, chain_if_there
from .._hooks.warnings import quietly

PREFIX = "sglang::"
SERVER = f"{PREFIX}http_server"  # SGLang gives the main process, which serves HTTP, no title

_targets: dict[str, Any] = {}  # functions that SGLang's main process starts children with, by name


def hook_titles(module):
    """Hooks the function with which SGLang titles its processes. The detokenizer has its title before it loads the plugin."""
    chain_if_there(module, "setproctitle", titled)
    if module.getproctitle().startswith(PREFIX):
        processes.begin(module.getproctitle())


def titled(*args, **kwargs):
    """Observes a process getting its title."""
    title = argument(args, kwargs, 0, "title", "")
    return (lambda _result, _error: processes.begin(title)) if title.startswith(PREFIX) else None


def hook_server(_module):
    """Names the main process of a server when it imports its HTTP server. An engine in the user's own process does not, and keeps its name."""
    if multiprocessing.parent_process() is None:
        processes.begin(SERVER)


def server_name():
    """Returns the name for a process that serves HTTP: SGLang's title, which only further servers have."""
    title = sys.modules["setproctitle"].getproctitle() if "setproctitle" in sys.modules else ""
    return title if title.startswith(PREFIX) else SERVER


def hook_target(module, name, start):
    """Makes a child process load the plugin if its module does not load SGLang's plugins, as before 0.5.23.

    `name` is the function that SGLang starts the child with. `start` is a function of this package that calls `run_target`. It takes the place of SGLang's function,
    because a spawned child finds its function by module and name.
    """
    target = getattr(module, name, None)
    if target is not None and not hasattr(module, "load_plugins") and multiprocessing.parent_process() is None:
        _targets[name] = target
        setattr(module, name, start)


def _register():
    import_module(".plugin", __package__).register()


def run_target(module, name, args, kwargs):
    """Runs SGLang's function in a child process after the plugin was registered."""
    quietly(_register)
    target = _targets.get(name)  # of a forked child
    return (target or getattr(import_module(module), name))(*args, **kwargs)


def hook_workers(module):
    """Hooks the function with which uvicorn starts further servers, because SGLang loads no plugins in them (`--tokenizer-worker-num`)."""
    hook_target(module, "subprocess_started", start_worker)


def start_worker(*args, **kwargs):
    """Runs a further server of uvicorn, with the plugin."""
    return run_target("uvicorn._subprocess", "subprocess_started", args, kwargs)
