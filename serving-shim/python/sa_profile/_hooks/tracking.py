"""Spans for functions that a variable names, `package.module:Class.method`, where `*` stands for any text: each is wrapped when its module is imported.

It needs no module of Python, as `likeness` says.
"""

import sys

from .._generators import wrap_async_generator, wrap_generator
from .._tracked import Tracked
from .._wrappers import wrap_plain
from .imports import when_any_is_imported
from .warnings import warn_once

MARK = "_sa_profile_tracked"
FUNCTION: type = type(lambda: None)
MODULE: type = type(sys)
# Flags of code objects, as `inspect` names them.
GENERATOR, COROUTINE, ASYNC_GENERATOR = 0x20, 0x80, 0x200
# What imports modules: a span within an import may need one, and would wait for itself.
MACHINERY = ("_frozen_importlib", "_frozen_importlib_external", "importlib")
# This package, under both its names.
OURS = ("sa_profile", "sa_profile_startup")


def watch(names):
    """Wraps functions, by the patterns of their modules and their own, now or when their modules are imported."""
    for module, function in names:
        when_any_is_imported(Tracking(module, function).wrap_in)


class Tracking:
    """The functions of one name."""

    def __init__(self, modules, functions):
        self.modules = modules
        self.functions = functions
        self.is_one = "*" not in modules + functions
        # Python's own modules are meant only by their names: what they do depends on who calls them.
        self.left_out = (*MACHINERY, *OURS) if "*" not in modules else (*MACHINERY, *OURS, *sys.stdlib_module_names)

    def wrap_in(self, name, module):
        """Wraps the functions of a module, and the methods of its classes, that match. One that is named without a `*` shall be there."""
        if name.partition(".")[0] in self.left_out or not _matches(self.modules, name) or not _has_members(module):
            return
        count = _wrap_members(self.functions, "", module, module.__name__)
        for name, value in list(vars(module).items()):
            if isinstance(value, type) and value.__module__ == module.__name__:
                count += _wrap_members(self.functions, f"{name}.", value, module.__name__)
        if not count and self.is_one:
            warn_once(f"this {module.__name__} has no {self.functions}: its spans are missing")


def _has_members(module):
    """Whether it is a module that may be looked into: another object may do anything then, and a lazy module loads itself."""
    kind = type(module)
    return issubclass(kind, MODULE) and kind.__getattribute__ is MODULE.__getattribute__


def _matches(pattern, name):
    """Whether a name is the pattern, where `*` stands for any text."""
    first, *others = pattern.split("*")
    if not others:
        return name == first
    *middle, last = others
    rest = name[len(first) :]
    if not name.startswith(first) or not rest.endswith(last):
        return False
    rest = rest[: len(rest) - len(last)]
    for part in middle:
        _, found, rest = rest.partition(part) if part else ("", "*", rest)
        if not found:
            return False
    return True


def _wrap_members(pattern, prefix, owner, module):
    found = [(name, _function(member)) for name, member in list(vars(owner).items())]
    wanted = [
        (name, function)
        for name, function in found
        if getattr(function, "__module__", None) == module and _is_meant(pattern, prefix, name)
    ]
    for name, function in wanted:
        if getattr(function, MARK, False):
            continue  # the module is seen again
        member = vars(owner)[name]
        tracked = _wrapped(function, Tracked(f"{prefix}{name}", "track", "e2e"))
        setattr(tracked, MARK, True)
        setattr(owner, name, tracked if member is function else type(member)(tracked))
    return len(wanted)


def _wrapped(function, tracked):
    flags = function.__code__.co_flags
    if flags & ASYNC_GENERATOR:
        return wrap_async_generator(function, tracked)
    if flags & GENERATOR:
        return wrap_generator(function, tracked)
    return wrap_plain(function, tracked.plain, bool(flags & COROUTINE))


def _function(member):
    """The function of a member of a module or class; `None` if it is none of Python's."""
    if isinstance(member, (staticmethod, classmethod)):
        member = member.__func__
    return member if isinstance(member, FUNCTION) else None


def _is_meant(pattern, prefix, name):
    """Methods such as `__init__` are meant only by their own name: they may run before there is an object, or after it."""
    if name.startswith("__") and not pattern.endswith(name):
        return False
    return _matches(pattern, prefix + name)
