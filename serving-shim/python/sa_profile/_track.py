"""``@track``: records a span for each call of a function, coroutine function, generator function or async generator function."""

import functools
import inspect
from collections.abc import Mapping

from . import _sa_profile
from ._generators import wrap_async_generator, wrap_generator
from ._tracked import Tracked
from ._wrappers import wrap_plain

_MAX_CHARS = 256


def track(
    function=None,
    /,
    *,
    name=None,
    cat="function",
    level="e2e",
    inputs=False,
    outputs=False,
    metadata=None,
    max_chars=_MAX_CHARS,
):
    """Records a span for each call of a function, coroutine, generator or async generator. Use it as ``@track`` or ``@track(cat="engine", inputs=True)``.

    Arguments:
        function: the function to decorate.
        name: name of the span, by default the function's qualified name.
        cat, level: the category, and the level of detail: ``"e2e"``, ``"kernel"`` or ``"verbose"``.
        inputs, outputs: whether to record the arguments, and the result (for a generator: the items).
        metadata: a dict of further args.
        max_chars: maximum length of a text in inputs and outputs. Lists and dicts are cut to 16 items, and other objects are recorded as the name of their type.

    The span of a generator lasts from its first item until it ends, raises or is closed, and has an instant for each item. It has its own lane, because spans of its consumer occur
    in between::

        @sa_profile.track(cat="engine", inputs=True, max_chars=100)
        def generate(prompt):
            return run(prompt)
    """
    if function is None:
        return functools.partial(
            track,
            name=name,
            cat=cat,
            level=level,
            inputs=inputs,
            outputs=outputs,
            metadata=metadata,
            max_chars=max_chars,
        )
    _check(function, "track")
    _check_options(metadata, max_chars)
    name = name or getattr(function, "__qualname__", type(function).__name__)
    signature = inspect.signature(function) if inputs else None
    return _wrap(function, Tracked(name, cat, level, signature, outputs, metadata, max_chars))


def within(span, function):
    """Returns a function that runs within the span. ``span(function)`` calls this."""
    _check(function, "decorate")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return _wrap(function, Tracked(span.name, span.cat, span.level))
    return wrap_plain(function, span, inspect.iscoroutinefunction(function))


def _check(function, what):
    if not callable(function):
        raise TypeError(f"expected a function to {what}, found {type(function).__name__}")


def _check_options(metadata, max_chars):
    if not isinstance(metadata, (Mapping, type(None))):
        raise TypeError(f"metadata: expected a dict, found {type(metadata).__name__}")
    if not isinstance(max_chars, int):
        raise TypeError(f"max_chars: expected an int, found {type(max_chars).__name__}")


def _wrap(function, tracked):
    if inspect.isasyncgenfunction(function):
        return wrap_async_generator(function, tracked)
    if inspect.isgeneratorfunction(function):
        return wrap_generator(function, tracked)
    if tracked.is_plain():
        return wrap_plain(function, tracked.plain, inspect.iscoroutinefunction(function))
    if inspect.iscoroutinefunction(function):
        return _wrap_coroutine(function, tracked)
    return _wrap_call(function, tracked)


def _wrap_coroutine(function, tracked):
    @functools.wraps(function)
    async def coroutine(*args, **kwargs):
        if not _sa_profile.is_enabled(tracked.level):
            return await function(*args, **kwargs)
        known = tracked.args(args, kwargs)
        with tracked.span(known):
            result = await function(*args, **kwargs)
            if tracked.outputs:
                known["output"] = tracked.output(result)
            return result

    return coroutine


def _wrap_call(function, tracked):
    @functools.wraps(function)
    def call(*args, **kwargs):
        if not _sa_profile.is_enabled(tracked.level):
            return function(*args, **kwargs)
        known = tracked.args(args, kwargs)
        with tracked.span(known):
            result = function(*args, **kwargs)
            if tracked.outputs:
                known["output"] = tracked.output(result)
            return result

    return call


_sa_profile.set_decorator(within)
