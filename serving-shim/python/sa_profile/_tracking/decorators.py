"""``@track``: records a span for each call of a function, coroutine function, generator function or async generator function."""

import functools
import inspect
from collections.abc import Mapping

from .. import _sa_profile
from .function_spans import FunctionSpans
from .wrappers import wrap_async_generator, wrap_call, wrap_call_with_args, wrap_coroutine_with_args, wrap_generator

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
    return _wrap(function, FunctionSpans(name, cat, level, signature, outputs, metadata, max_chars))


def decorate(span, function):
    """Returns a function that runs within the span. ``span(function)`` calls this."""
    _check(function, "decorate")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return _wrap(function, FunctionSpans(span.name, span.cat, span.level))
    return wrap_call(function, span, inspect.iscoroutinefunction(function))


def _check(function, what):
    if not callable(function):
        raise TypeError(f"expected a function to {what}, found {type(function).__name__}")


def _check_options(metadata, max_chars):
    if not isinstance(metadata, (Mapping, type(None))):
        raise TypeError(f"metadata: expected a dict, found {type(metadata).__name__}")
    if not isinstance(max_chars, int):
        raise TypeError(f"max_chars: expected an int, found {type(max_chars).__name__}")


def _wrap(function, spans):
    if inspect.isasyncgenfunction(function):
        return wrap_async_generator(function, spans)
    if inspect.isgeneratorfunction(function):
        return wrap_generator(function, spans)
    if spans.are_shared():
        return wrap_call(function, spans.shared_span, inspect.iscoroutinefunction(function))
    if inspect.iscoroutinefunction(function):
        return wrap_coroutine_with_args(function, spans)
    return wrap_call_with_args(function, spans)


_sa_profile.set_decorator(decorate)
