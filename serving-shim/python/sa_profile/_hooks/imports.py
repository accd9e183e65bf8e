"""Calls a function when a module has been imported, so that a plugin need not import modules of its engine itself.

Plugins are loaded before most of the engine. Importing its modules at that point would change the order of the imports, and
platforms replace classes between two of them.
"""

import sys

from .._sa_profile import add_import_listener
from .warnings import quietly

_hooks = {}
_hooks_of_any = []
_is_listening = False


def when_imported(name, hook):
    """Calls `hook(module)` now if the module is imported. Otherwise calls it directly after the import, before any importing thread continues. An exception of the hook is only reported.

    A module that is loaded in another way, for example with `module_from_spec` and `exec_module`, does not count as imported. For a module that `LazyLoader` loads, the hook is called before its body runs.
    """
    _hooks.setdefault(name, []).append(hook)
    _listen()
    module = sys.modules.get(name)
    if module is not None:
        _call_hooks(name, module)


def when_any_is_imported(hook):
    """Calls `hook(name, module)` for every module, like `when_imported` does for one. It may be called twice for a module."""
    for name, module in list(sys.modules.items()):
        if not is_initializing(module):
            quietly(hook, name, module)
    _hooks_of_any.append(hook)
    _listen()


def is_initializing(module):
    """Returns true if the module's body is still running, by the flag that the interpreter itself uses."""
    try:
        return getattr(getattr(module, "__spec__", None), "_initializing", False)
    except Exception:  # an object that the program put there, whose attributes may raise anything
        return False


def _listen():
    global _is_listening
    if not _is_listening:
        _is_listening = True
        add_import_listener(_on_import)


def _call_hooks(name, module):
    for hook in _hooks.pop(name, ()):
        quietly(hook, module)


def _on_import(name, module):
    _call_hooks(name, module)
    for hook in _hooks_of_any:
        quietly(hook, name, module)
