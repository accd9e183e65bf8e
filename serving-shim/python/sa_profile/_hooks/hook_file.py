"""Records spans for the functions that a file names (`SA_PROFILE_HOOKS`). The extension reads the file, and the functions are wrapped when their modules are imported.

Imports no standard module, for the reason given in `_tracking`. `os` is always imported.
"""

import atexit
import os
import sys

from .. import _sa_profile
from .attribute_paths import PathSpans
from .imports import is_initializing, when_any_is_imported, when_imported
from .named_functions import NamedFunctions, function_of
from .warnings import quietly, warn_once

HOOKS = "SA_PROFILE_HOOKS"
# The file whose mistakes and ignored parts are already reported.
REPORTED = "SA_PROFILE_HOOKS_REPORTED"
# This module in the copy of the package that `sa-profile run` starts in each Python process.
STARTED = "sa_profile_startup._hooks.hook_file"
INFORMATION = (".dist-info", ".egg-info")
_versions = {}


def watch_once(path):
    """Does what `watch` does, unless `sa-profile run` has already done it in this process."""
    if STARTED not in sys.modules:
        quietly(watch, path)


def watch(path):
    """Records the functions that a file names. Child processes get its absolute path."""
    path = os.environ[HOOKS] = os.path.abspath(path)
    is_reported = os.environ.get(REPORTED) == path
    os.environ[REPORTED] = path
    try:
        fields, ignored = _sa_profile.read_hooks(path)
    except ValueError as error:
        fields, ignored = (), None
        if not is_reported:
            warn_once(f"no function is hooked: {error}")
    if ignored and not is_reported:
        warn_once(f"{path}: ignored: {ignored}")
    hooks = [FileHook(**one) for one in fields]
    # A module that is named is handled before listeners for all modules are called.
    for hook in sorted(hooks, key=lambda hook: not hook.names_module):
        hook.watch()
    for package in dict.fromkeys(hook.root for hook in hooks if hook.names_module):
        missing = _MissingModules(package, [hook for hook in hooks if hook.root == package])
        when_imported(package, missing.report)
        atexit.register(missing.report_package)


class FileHook(NamedFunctions):
    """The functions that one hook of a file selects."""

    def __init__(self, module, function, name, category, level, args, package, min_version, max_version):
        super().__init__(module, function, False)
        self.name = name
        self.category = category
        self.level = level
        self.paths = args
        self.package = package
        self.bounds = (min_version, max_version)
        self.root = module.partition(".")[0]
        self.names_module = "*" not in module

    def watch(self):
        """Wraps the functions now, or when their module is imported."""
        if not self.names_module:
            when_any_is_imported(self.wrap_in_module)
        elif is_initializing(sys.modules.get(self.modules)):
            warn_once(f"{self.modules} was being imported when the hooks were read: its functions have no spans")
        else:
            when_imported(self.modules, lambda module: self.wrap_in_module(self.modules, module))

    def wrap_in_module(self, name, module):
        if self.has_module(name) and self.is_for_version():
            super().wrap_in_module(name, module)

    def spans(self, name, function):
        return PathSpans(self.name or name, self.category, self.level, self.paths, function)

    def is_for_version(self):
        """Returns true if the version of the package is within the bounds, or unknown."""
        if self.bounds == (None, None):
            return True
        version = _version(self.package)
        is_between = version and _sa_profile.is_version_between(version, *self.bounds)
        if is_between is None:
            warn_once(f"the version of {self.package} is unknown: its functions are hooked whatever it is")
        return is_between is not False

    def _wrap_selected(self, module):
        """Wraps the function of a name without `*`, which may be inherited or imported from elsewhere. Other names are matched with the members of the module."""
        if not self.is_exact:
            return super()._wrap_selected(module)
        *owners, name = self.functions.split(".")
        owner = module
        for part in owners:
            owner = _member(owner, part)
        member = _member(owner, name)
        if member is None:
            return 0
        if function_of(member) is None:
            warn_once(f"{self.modules}:{self.functions} cannot be wrapped (expected a Python function, found {type(member).__name__}): its spans are missing")
        else:
            self._wrap_member(owner, name, member, self.functions)
        return 1


class _MissingModules:
    """Reports the modules that hooks name and that do not exist."""

    def __init__(self, package, hooks):
        self.package = package
        self.hooks = hooks

    def report(self, _package):
        """Reports the missing modules of an imported package."""
        for name in dict.fromkeys(hook.modules for hook in self.hooks if hook.is_for_version()):
            if not _exists(name):
                warn_once(f"this {self.package} has no module {name}: its spans are missing")

    def report_package(self):
        """Reports at the end of a process that the package itself does not exist. Processes that multiprocessing starts do not repeat it."""
        is_helper = any(word.startswith("from multiprocessing") for word in sys.orig_argv)
        if not is_helper and quietly(_exists, self.package) is False:
            count = len(self.hooks)
            warn_once(f"there is no module {self.package}: {count} {'hook has' if count == 1 else 'hooks have'} no spans")


def _member(owner, name):
    """Returns a member of a module or class without running code of the program, or None."""
    for place in getattr(owner, "__mro__", (owner,)) if isinstance(owner, type) else (owner,):
        members = getattr(place, "__dict__", None) or {}
        if name in members:
            return members[name]
    return None


def _exists(name):
    """Returns true if a module is imported or can be found. Its parents are searched, not imported."""
    path, found = None, ""
    for part in name.split("."):
        found = f"{found}.{part}" if found else part
        if found in sys.modules:
            path = getattr(sys.modules[found], "__dict__", {}).get("__path__")
        elif path is None and found != part:
            return False  # its parent is no package
        else:
            try:
                spec = _spec(found, path)
            except KeyError:  # a folder without `__init__.py`, whose parent is not imported
                path = [folder for folder in (f"{parent}/{part}" for parent in path or ()) if os.path.isdir(folder)]
                continue
            if spec is None:
                return False
            path = spec.submodule_search_locations
    return True


def _spec(name, path):
    for finder in list(sys.meta_path):
        find = getattr(finder, "find_spec", None)
        spec = find(name, path, None) if find else None
        if spec is not None:
            return spec
    return None


def _version(package):
    """Returns the version of a package, or None if it is unknown."""
    if package not in _versions:
        own = getattr(sys.modules.get(package), "__dict__", {}).get("__version__")
        _versions[package] = own if isinstance(own, str) else _installed_version(package)
    return _versions[package]


def _installed_version(package):
    """Returns the version in the name of the folder with the package's metadata, as installers write it."""
    wanted = _normalized(package)
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if name.endswith(INFORMATION):
                found, _, version = name.rpartition(".")[0].partition("-")
                if _normalized(found) == wanted:
                    return version.partition("-")[0]
    return None


def _normalized(name):
    return name.lower().replace("-", "_").replace(".", "_")
