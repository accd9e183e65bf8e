"""Spans for functions that a variable names, `package.module:Class.method`, where `*` stands for any text: each is wrapped when its module is imported."""

import functools
import re
import types

from ..track import track
from .imports import when_any_is_imported
from .warnings import warn_once

MARK = "_sa_profile_tracked"


def watch(names):
    """Wraps functions, by the patterns of their modules and their own, now or when their modules are imported."""
    for module, function in names:
        is_wanted = functools.partial(_matches, module)
        is_one = "*" not in module + function
        when_any_is_imported(is_wanted, functools.partial(_wrap_in, function, is_one))


def _matches(pattern, name):
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None


def _wrap_in(pattern, is_one, module):
    """Wraps the functions of a module, and the methods of its classes, that match. One that is named without a `*` shall be there."""
    count = _wrap_members(pattern, "", module, module.__name__)
    for name, value in list(vars(module).items()):
        if isinstance(value, type) and value.__module__ == module.__name__:
            count += _wrap_members(pattern, f"{name}.", value, module.__name__)
    if not count and is_one:
        warn_once(f"this {module.__name__} has no {pattern}: its spans are missing")


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
        tracked = track(name=f"{prefix}{name}", cat="track")(function)
        setattr(tracked, MARK, True)
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
