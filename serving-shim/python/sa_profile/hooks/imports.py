"""Runs a function when a module has been imported, so that a plugin itself imports nothing of its engine.

Plugins are loaded before most of the engine is. Importing its modules then would change the order in which they come, and
platforms replace classes between two such imports.
"""

import importlib.abc
import importlib.util
import sys

from .chain import quietly


class _Watching(importlib.abc.Loader):
    """The real loader of a module, which tells the watcher when the module is whole."""

    def __init__(self, loader, watcher):
        self._loader = loader
        self._watcher = watcher

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        # What asks a module for its loader (resources, inspect) shall meet the real one.
        module.__loader__ = module.__spec__.loader = self._loader
        self._watcher.imported(module)


class _Watcher(importlib.abc.MetaPathFinder):
    """Finds only the modules somebody waits for, through the finders behind it."""

    def __init__(self):
        self._hooks = {}
        self._hooks_of_any = []
        self._finding = set()

    def wait_for(self, name, hook):
        self._hooks.setdefault(name, []).append(hook)

    def wait_for_any(self, is_wanted, hook):
        self._hooks_of_any.append((is_wanted, hook))

    def _waits_for(self, name):
        return name in self._hooks or any(is_wanted(name) for is_wanted, _ in self._hooks_of_any)

    def find_spec(self, name, path=None, target=None):
        if name in self._finding or not self._waits_for(name):
            return None
        self._finding.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._finding.discard(name)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Watching(spec.loader, self)
        return spec

    def imported(self, module):
        of_any = [hook for is_wanted, hook in self._hooks_of_any if is_wanted(module.__name__)]
        for hook in (*self._hooks.pop(module.__name__, ()), *of_any):
            quietly(hook, module)


_watcher = _Watcher()


def when_imported(name, hook):
    """Calls `hook(module)` now if the module is imported, else directly after it is. What the hook raises is only reported."""
    module = sys.modules.get(name)
    if module is not None:
        quietly(hook, module)
        return
    _watcher.wait_for(name, hook)
    _watch()


def when_any_is_imported(is_wanted, hook):
    """Calls `hook(module)` for each module whose name is wanted, as `when_imported` does for one."""
    for name, module in list(sys.modules.items()):
        if module is not None and is_wanted(name):
            quietly(hook, module)
    _watcher.wait_for_any(is_wanted, hook)
    _watch()


def _watch():
    if _watcher not in sys.meta_path:
        sys.meta_path.insert(0, _watcher)
