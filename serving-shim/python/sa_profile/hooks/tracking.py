"""Spans for functions that a variable names, `package.module:Class.method`, where `*` stands for any text: each is wrapped when its module is imported."""

import fnmatch
import functools
import types

from ..track import track
from .imports import when_any_is_imported
from .warnings import warn_once


def watch(names):
    """Wraps the functions of a comma list of names, now or when their modules are imported."""
    for name in filter(None, (name.strip() for name in names.split(","))):
        module, _, function = name.partition(":")
        if not module or not function:
            warn_once(f"SA_PROFILE_TRACK: expected MODULE:FUNCTION, found {name!r}: it is left out")
            continue
        is_wanted = functools.partial(_matches, module)
        when_any_is_imported(is_wanted, functools.partial(_wrap_in, function))


def _matches(pattern, name):
    return fnmatch.fnmatchcase(name, pattern)


def _wrap_in(pattern, module):
    """Wraps the functions of a module, and the methods of its classes, that match."""
    count = _wrap_members(pattern, "", module, module.__name__)
    for name, value in list(vars(module).items()):
        if isinstance(value, type) and value.__module__ == module.__name__:
            count += _wrap_members(pattern, f"{name}.", value, module.__name__)
    if not count and "*" not in pattern:
        warn_once(f"this {module.__name__} has no {pattern}: its spans are missing")


def _wrap_members(pattern, prefix, owner, module):
    found = [(name, _function(member)) for name, member in list(vars(owner).items())]
    wanted = [
        (name, function)
        for name, function in found
        if getattr(function, "__module__", None) == module and _is_meant(pattern, prefix, name)
    ]
    for name, function in wanted:
        member = vars(owner)[name]
        tracked = track(name=f"{prefix}{name}", cat="track")(function)
        setattr(owner, name, tracked if member is function else type(member)(tracked))
    return len(wanted)


def _function(member):
    """The function of a member of a module or class; `None` if it is none of Python's."""
    if isinstance(member, (staticmethod, classmethod)):
        member = member.__func__
    return member if isinstance(member, types.FunctionType) else None


def _is_meant(pattern, prefix, name):
    """Methods such as `__init__` are meant only by their own name: they may run before there is an object, or after it."""
    if name.startswith("__") and not pattern.endswith(name):
        return False
    return _matches(pattern, prefix + name)
