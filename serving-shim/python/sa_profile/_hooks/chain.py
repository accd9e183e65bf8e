"""Puts an observer around a function that somebody else calls, without changing what the call does.

An observer is a function of the call's arguments that returns what to do at its end, or `None`:

    def observe(*args, **kwargs):
        ...                                # before the call
        return leave                       # leave(result, error) after it; one of the two is None

The wrapped function gets the same arguments, and its caller the same result or exception. An observer that raises is
reported once and not asked again for that call.
"""

import functools
import inspect

from .._sa_profile import is_enabled
from .warnings import engine, failed, quietly, warn_once

MARK = "_sa_profile_chained"


def inside(function, span):
    """The function within a span that has nothing to say of the call."""
    chained = span(function)
    setattr(chained, MARK, True)
    return chained


def around(function, observe):
    """The function with an observer around each call."""

    @functools.wraps(function)
    def chained(*args, **kwargs):
        # Without a call of `quietly`: these are the calls of each step.
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
    """The same for a coroutine function: the observer's end is when the coroutine's is, also by cancellation."""

    @functools.wraps(function)
    async def chained(*args, **kwargs):
        # Without a call of `quietly`: these are the calls of each request.
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
    """Whether the function, or the one a bound method has, came from here."""
    return getattr(function, MARK, False)


def chain_if_there(owner, name, observe, wrap=None):
    """The same as `chain` for what some versions have and others do not: nothing is said where it is missing."""
    return callable(getattr(owner, name, None)) and chain(owner, name, observe, wrap)


_details = []  # arguments of the chains that wait for level verbose


def chain_in_detail(owner, name, observe, wrap=None):
    """Does what `chain_if_there` does once level `verbose` is recorded, for an observer that records at that level only. Until then the function is not wrapped.

    Callers must look the function up for each call: a reference that somebody took before goes to the function itself.
    """
    if owner is not None:
        _details.append((owner, name, observe, wrap))
        chain_details()


def chain_details():
    """Wraps the functions that wait for level `verbose`, if it is recorded now. It is cheap enough to be called for each request."""
    if _details and is_enabled("verbose"):
        waiting = _details.copy()
        _details.clear()
        for details in waiting:
            quietly(chain_if_there, *details)


def chain(owner, name, observe, wrap=None):
    """Wraps `owner.name`, a function of a module, a method of a class or an attribute of an instance. False if it is missing or already wrapped.

    Coroutine functions are found by themselves. `wrap` is for what only returns a coroutine, and `inside` for a span instead of an observer.
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
    """An argument of a call that may have come by position or by name."""
    if name in kwargs:
        return kwargs[name]
    return args[position] if len(args) > position else default
