"""Records spans for functions that a variable names, as `package.module:Class.method`, where `*` matches any text.

From Python 3.12 on, `calls` observes them with `sys.monitoring`. Generators, and all functions on older Pythons, are wrapped when their module is imported.

Imports no standard module, for the reason given in `_tracking`.
"""

import sys

from .._tracking.function_spans import FunctionSpans
from .._tracking.wrappers import wrap_async_generator, wrap_call, wrap_call_with_args, wrap_coroutine_with_args, wrap_generator
from . import calls
from .imports import when_any_is_imported
from .warnings import described, warn_once

MARK = "_sa_profile_tracked"
FUNCTION: type = type(lambda: None)
MODULE: type = type(sys)
# Flags of code objects, as `inspect` names them. OPTIMIZED is not set for bodies of modules and classes.
OPTIMIZED, GENERATOR, COROUTINE, ASYNC_GENERATOR = 0x1, 0x20, 0x80, 0x200
LOCALS = "<locals>"
# The import system. A span within an import may need to import a module, and would then wait for itself.
IMPORT_SYSTEM = ("_frozen_importlib", "_frozen_importlib_external", "importlib")
# This package, under all its names.
OWN_PACKAGES = ("sa_profile", "sa_profile_startup", "sitecustomize")


def watch(names):
    """Records calls of functions, given as pairs of patterns for the module and the function."""
    is_monitored = calls.enable()
    if not is_monitored and hasattr(sys, "monitoring"):
        warn_once("the tools 3 and 4 of sys.monitoring are taken: functions are wrapped, and those of the script have no spans")
    selections = [NamedFunctions(module, function, is_monitored) for module, function in names]
    if is_monitored:
        calls.track_matching(_Filter(selections).span_name)
    for selection in selections:
        when_any_is_imported(selection.wrap_in_module)


class _Filter:
    """Decides which functions have spans that `sys.monitoring` records."""

    def __init__(self, selections):
        self.selections = selections
        self.patterns = {}

    def span_name(self, code, module):
        """Returns the name of the function's spans, or None if no pattern matches it."""
        patterns = self.patterns.get(module)
        if patterns is None:
            patterns = self.patterns[module] = [one.functions for one in self.selections if one.has_module(module)]
        if not patterns or not code.co_flags & OPTIMIZED or _is_generator(code):
            return None
        prefix, dot, name = code.co_qualname.rpartition(".")
        is_selected = not name.startswith("<") and [pattern for pattern in patterns if _is_code_selected(pattern, prefix + dot, name)]
        return code.co_qualname if is_selected else None


class NamedFunctions:
    """The functions that one name of the variable selects."""

    def __init__(self, modules, functions, is_monitored):
        self.modules = modules
        self.functions = functions
        self.is_monitored = is_monitored
        self.is_exact = "*" not in modules + functions
        # Modules of the standard library are selected only by their full names, because much of a program's other code calls them.
        self.excluded = (*IMPORT_SYSTEM, *OWN_PACKAGES) if "*" not in modules else (*IMPORT_SYSTEM, *OWN_PACKAGES, *sys.stdlib_module_names)

    def has_module(self, name):
        """Returns true if the pattern may match functions of this module."""
        return isinstance(name, str) and name.partition(".")[0] not in self.excluded and _matches(self.modules, name)

    def wrap_in_module(self, name, module):
        """Wraps the matching functions of a module and methods of its classes. Warns if a name without `*` does not exist."""
        if not self.has_module(name) or not _has_members(module) or self.is_monitored and name == "__main__":
            return  # sys.monitoring covers the script, which has no functions yet
        count = self._wrap_selected(module)
        if not count and self.is_exact and not (self.is_monitored and _exists(self.functions, module)):
            warn_once(f"this {module.__name__} has no {self.functions}: its spans are missing")

    def spans(self, name, function):
        """Returns what creates the spans of a function with this qualified name."""
        return FunctionSpans(name, "track", "e2e")

    def _wrap_selected(self, module):
        """Wraps the matching functions. Returns their number."""
        count = self._wrap_members("", module, module.__name__)
        for name, value in list(vars(module).items()):
            if isinstance(value, type) and value.__module__ == module.__name__:
                count += self._wrap_members(f"{name}.", value, module.__name__)
        return count

    def _wrap_members(self, prefix, owner, module):
        found = [(name, member) for name, member in list(vars(owner).items()) if _is_selected(self.functions, prefix, name)]
        selected = [(name, member) for name, member in found if getattr(function_of(member), "__module__", None) == module]
        for name, member in selected:
            self._wrap_member(owner, name, member, f"{prefix}{name}")
        return len(selected)

    def _wrap_member(self, owner, name, member, qualified_name):
        function = function_of(member)
        if getattr(function, MARK, False) or self.is_monitored and not _is_generator(function.__code__):
            return  # the module was handled before, or sys.monitoring covers the function
        wrapper = _wrap(function, self.spans(qualified_name, function))
        setattr(wrapper, MARK, True)
        try:
            setattr(owner, name, wrapper if member is function else type(member)(wrapper))
        except Exception as error:  # of a metaclass
            warn_once(f"{function.__module__}:{qualified_name} cannot be wrapped ({described(error)}): its spans are missing")


def _has_members(module):
    """Returns true if it is a module whose attributes may be read. Another object could run any code, and a lazy module would load itself."""
    kind = type(module)
    return issubclass(kind, MODULE) and kind.__getattribute__ is MODULE.__getattribute__


def _matches(pattern, name):
    """Returns true if the name matches the pattern, where `*` stands for any text."""
    first, *others = pattern.split("*")
    if not others:
        return name == first
    *middle, last = others
    remainder = name[len(first) :]
    if not name.startswith(first) or not remainder.endswith(last):
        return False
    remainder = remainder[: len(remainder) - len(last)]
    for part in middle:
        _, found, remainder = remainder.partition(part) if part else ("", "*", remainder)
        if not found:
            return False
    return True


def _wrap(function, spans):
    flags = function.__code__.co_flags
    if flags & ASYNC_GENERATOR:
        return wrap_async_generator(function, spans)
    if flags & GENERATOR:
        return wrap_generator(function, spans)
    if spans.are_shared():
        return wrap_call(function, spans.shared_span, bool(flags & COROUTINE))
    return wrap_coroutine_with_args(function, spans) if flags & COROUTINE else wrap_call_with_args(function, spans)


def function_of(member):
    """Returns the function of a member of a module or class, or `None` if it is not a Python function."""
    if isinstance(member, (staticmethod, classmethod)):
        member = member.__func__
    return member if isinstance(member, FUNCTION) else None


def _is_generator(code):
    return code.co_flags & (GENERATOR | ASYNC_GENERATOR)


def _exists(name, module):
    """Returns true if a module contains this name, for example as a property. Functions inside a function cannot be checked."""
    found = module
    for part in name.partition(f".{LOCALS}")[0].split("."):
        found = getattr(found, "__dict__", {}).get(part)
    return found is not None


def _is_code_selected(pattern, prefix, name):
    """Returns true if a pattern selects this code. Functions inside functions are selected only by patterns that say so."""
    return (LOCALS in pattern or LOCALS not in prefix) and _is_selected(pattern, prefix, name)


def _is_selected(pattern, prefix, name):
    """Returns true if a pattern selects this function. Methods such as `__init__` are selected only by their own name, because they may run before the object exists or after it is gone."""
    if name.startswith("__") and not pattern.endswith(name):
        return False
    return _matches(pattern, prefix + name)
