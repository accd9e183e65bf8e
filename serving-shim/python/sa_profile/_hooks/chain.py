"""Wraps functions with observers, without changing what their calls do.

An observer gets the arguments of a call. It returns a function to run at the end of the call, or `None`:

    def observe(*args, **kwargs):
        ...                                # before the call
        return leave                       # called after it as leave(result, error); one of the two is None

The wrapped function gets the same arguments, and its caller the same result or exception. If an observer raises an exception, that is
reported once, and the call continues without it.
"""

import functools
import inspect

from .._sa_profile import is_enabled
from .warnings import engine, failed, quietly, warn_once

MARK = "_sa_profile_chained"


def inside(function, span):
    """Wraps a function in a span that needs no arguments or results of the call."""
    chained = span(function)
    setattr(chained, MARK, True)
    return chained


def around(function, observe):
    """Wraps a function so that an observer sees each call."""

    @functools.wraps(function)
    def chained(*args, **kwargs):
        # Written out instead of using `quietly`, because this runs in each step.
        try:
            leave = observe(*args, **kwargs)
        except Exception as error:
            leave = failed(observe, error)
        if leave is None:
            return function(*args, **kwargs)
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            quietly(leave, None, error)
            raise
        try:
            leave(result, None)
        except Exception as error:
            failed(leave, error)
        return result

    setattr(chained, MARK, True)
    return chained


def around_coroutine(function, observe):
    """Wraps a coroutine function. The observed call ends with the coroutine, even if it is cancelled."""

    @functools.wraps(function)
    async def chained(*args, **kwargs):
        # Written out instead of using `quietly`, because this runs for each request.
        try:
            leave = observe(*args, **kwargs)
        except Exception as error:
            leave = failed(observe, error)
        if leave is None:
            return await function(*args, **kwargs)
        try:
            result = await function(*args, **kwargs)
        except BaseException as error:
            quietly(leave, None, error)
            raise
        try:
            leave(result, None)
        except Exception as error:
            failed(leave, error)
        return result

    setattr(chained, MARK, True)
    return chained


def is_chained(function):
    """Returns true if the function, or the function of a bound method, is already wrapped."""
    return getattr(function, MARK, False)


def find_class(module, name):
    """Returns a class of a module. Returns `None`, after a warning, if this version of the engine lacks it."""
    found = getattr(module, name, None)
    if found is None:
        warn_once(f"this {engine()} has no {module.__name__}.{name}: its spans are missing")
    return found


def chain_if_there(owner, name, observe, wrap=None):
    """Does what `chain` does, but without a warning if the function is missing, as it is in some versions."""
    return callable(getattr(owner, name, None)) and chain(owner, name, observe, wrap)


_details = []  # arguments of chains that wait for level `verbose`


def chain_in_detail(owner, name, observe, wrap=None):
    """Does what `chain_if_there` does, but only once level `verbose` is recorded. It is for observers that record only at that level; until then the function stays unwrapped.

    Callers must look up the function for each call: a reference taken earlier refers to the unwrapped function.
    """
    if owner is not None:
        _details.append((owner, name, observe, wrap))
        chain_details()


def chain_details():
    """Wraps the functions that wait for level `verbose`, if it is now recorded. It is cheap enough to call for each request."""
    if _details and is_enabled("verbose"):
        waiting = _details.copy()
        _details.clear()
        for details in waiting:
            quietly(chain_if_there, *details)


def chain(owner, name, observe, wrap=None):
    """Wraps `owner.name`: a function of a module, a method of a class or an attribute of an instance. Returns False if it is missing or already wrapped.

    Coroutine functions are detected. Pass `wrap` for a plain function that returns a coroutine, or pass `inside` to wrap it in a span instead of adding an observer.
    """
    named = owner if inspect.isclass(owner) or inspect.ismodule(owner) else type(owner)
    label = f"{named.__name__}.{name}"
    found = inspect.getattr_static(owner, name, None)
    function = getattr(owner, name, None)
    if not callable(function):
        warn_once(f"this {engine()} has no {label}: its spans are missing")
        return False
    if is_chained(function):
        return False
    if wrap is None:
        wrap = _wrapper_for(function)
    wrapped = wrap(function, observe)
    try:
        setattr(owner, name, staticmethod(wrapped) if _is_static(owner, found) else wrapped)
    except (AttributeError, TypeError) as error:
        warn_once(f"{label} cannot be wrapped ({error}): its spans are missing")
        return False
    return True


def _wrapper_for(function):
    return around_coroutine if inspect.iscoroutinefunction(function) else around


def _is_static(owner, found):
    return inspect.isclass(owner) and isinstance(found, staticmethod)


def argument(args, kwargs, position, name, default=None):
    """Returns an argument of a call, which may have been passed by position or by name."""
    if name in kwargs:
        return kwargs[name]
    return args[position] if len(args) > position else default
