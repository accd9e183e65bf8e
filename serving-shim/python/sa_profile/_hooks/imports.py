"""Runs a function when a module has been imported, so that a plugin itself imports nothing of its engine.

Plugins are loaded before most of the engine is. Importing its modules then would change the order in which they come, and
platforms replace classes between two such imports.
"""

import sys

from .._sa_profile import tell_imports
from .warnings import quietly

_hooks = {}
_hooks_of_any = []
_is_told = False


def when_imported(name, hook):
    """Calls `hook(module)` now if the module is imported, else directly after it is, before any thread goes on that imports it. What the hook raises is only reported.

    A module that is loaded otherwise, as by `module_from_spec` and `exec_module`, is none that is imported. One that `LazyLoader` loads is told of before its body runs.
    """
    _hooks.setdefault(name, []).append(hook)
    _listen()
    module = sys.modules.get(name)
    if module is not None:
        _call_those_for(name, module)


def when_any_is_imported(hook):
    """Calls `hook(name, module)` for each module, as `when_imported` does for one. It may see a module twice."""
    for name, module in list(sys.modules.items()):
        if not _is_under_way(module):
            quietly(hook, name, module)
    _hooks_of_any.append(hook)
    _listen()


def _is_under_way(module):
    """Whether the module's body still runs, as the interpreter itself asks."""
    try:
        return getattr(getattr(module, "__spec__", None), "_initializing", False)
    except Exception:  # an object that a program put there, which may do anything
        return False


def _listen():
    global _is_told
    if not _is_told:
        _is_told = True
        tell_imports(_imported)


def _call_those_for(name, module):
    for hook in _hooks.pop(name, ()):
        quietly(hook, module)


def _imported(name, module):
    _call_those_for(name, module)
    for hook in _hooks_of_any:
        quietly(hook, name, module)
