"""Runs a function when a module has been imported, so that a plugin itself imports nothing of its engine.

Plugins are loaded before most of the engine is. Importing its modules then would change the order in which they come, and
platforms replace classes between two such imports.
"""

import sys

from .._sa_profile import tell_imports
from .chain import quietly

_hooks = {}
_hooks_of_any = []
_is_told = False


def when_imported(name, hook):
    """Calls `hook(module)` now if the module is imported, else directly after it is. What the hook raises is only reported."""
    module = sys.modules.get(name)
    if module is not None:
        quietly(hook, module)
        return
    _hooks.setdefault(name, []).append(hook)
    _listen()


def when_any_is_imported(is_wanted, hook):
    """Calls `hook(module)` for each module whose name is wanted, as `when_imported` does for one. It may see a module twice."""
    for name, module in list(sys.modules.items()):
        if module is not None and is_wanted(name) and not _is_under_way(module):
            quietly(hook, module)
    _hooks_of_any.append((is_wanted, hook))
    _listen()


def _is_under_way(module):
    """Whether the module's body still runs, as the interpreter itself asks."""
    return getattr(getattr(module, "__spec__", None), "_initializing", False)


def _listen():
    global _is_told
    if not _is_told:
        _is_told = True
        tell_imports(_imported)


def _imported(name, module):
    of_any = [hook for is_wanted, hook in _hooks_of_any if is_wanted(name)]
    for hook in (*_hooks.pop(name, ()), *of_any):
        quietly(hook, module)
