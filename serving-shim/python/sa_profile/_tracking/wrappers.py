"""Wraps functions of every kind so that their calls are spans. Results, yielded items, sent values and exceptions pass through unchanged.

If all calls share one span without args, the wrapper has the same parameters as the wrapped function, so no tuple or dict of arguments is built. While nothing is recorded,
such a call costs only a check and a further call.
"""

import sys

from .. import _sa_profile

_FUNCTION: type = type(lambda: None)
# Flags of code objects, as `inspect` names them.
_VARARGS, _VARKEYWORDS, _ITERABLE_COROUTINE = 0x4, 0x8, 0x100
# The attributes that `functools.wraps` copies.
_COPIED = (
    "__module__",
    "__name__",
    "__qualname__",
    "__doc__",
    "__annotate__" if sys.version_info >= (3, 14) else "__annotations__",
    "__type_params__",
)

_MAX_FACTORIES = 512
_factories: dict = {}  # by keywords, parameters and arguments, all as source code

_IS_OFF = {
    "e2e": _sa_profile.is_off_e2e,
    "kernel": _sa_profile.is_off_kernel,
    "verbose": _sa_profile.is_off_verbose,
}
# Keywords for a wrapper of a function, and of a coroutine function.
_FUNCTION_KEYWORDS = ("", "")
_COROUTINE_KEYWORDS = ("async ", "await ")
_TEMPLATE = """
def wrap({function}, {span}, {is_off}):
    {asynchronous}def call({parameters}):
        if {is_off}():
            return {awaited}{function}({arguments})
        with {span}:
            return {awaited}{function}({arguments})
    return call
"""


def wraps(function):
    """Returns a decorator that makes a wrapper look like the function, as `functools.wraps` does."""

    def copy_attributes(wrapper):
        for name in _COPIED:
            if hasattr(function, name):
                setattr(wrapper, name, getattr(function, name))
        vars(wrapper).update(getattr(function, "__dict__", {}))
        wrapper.__wrapped__ = function
        return wrapper

    return copy_attributes


def wrap_call(function, span, is_coroutine):
    """Wraps a function, or a coroutine function, so that all of its calls run within the same span."""
    keywords = _COROUTINE_KEYWORDS if is_coroutine else _FUNCTION_KEYWORDS
    call = _factory(*keywords, *_signature_source(function))(function, span, _IS_OFF[span.level])
    if isinstance(function, _FUNCTION):
        call.__defaults__, call.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return wraps(function)(call)


def _signature_source(function):
    """Returns a function's parameters, and the arguments that pass them on, as source code. Defaults are left out: the wrapper gets the function's own objects."""
    if not isinstance(function, _FUNCTION):
        return "*args, **kwargs", "*args, **kwargs"
    code = function.__code__
    names = list(code.co_varnames)
    positional, keyword = names[: code.co_argcount], names[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    rest = names[code.co_argcount + code.co_kwonlyargcount :]
    more = [f"*{rest.pop(0)}"] if code.co_flags & _VARARGS else []
    others = [f"**{rest.pop(0)}"] if code.co_flags & _VARKEYWORDS else []
    parameters = [*positional, *(more or ["*"] * bool(keyword)), *keyword, *others]
    if code.co_posonlyargcount:
        parameters.insert(code.co_posonlyargcount, "/")
    arguments = [*positional, *more, *(f"{name}={name}" for name in keyword), *others]
    return ", ".join(parameters), ", ".join(arguments)


def _factory(*key):
    """Returns the function that creates wrappers for functions with these parameters."""
    if key not in _factories:
        if len(_factories) == _MAX_FACTORIES:
            _factories.clear()
        _factories[key] = _compile_factory(*key)
    return _factories[key]


def _compile_factory(asynchronous, awaited, parameters, arguments):
    own = {name: _unused_name(name, parameters) for name in ("function", "span", "is_off")}
    source = _TEMPLATE.format(asynchronous=asynchronous, awaited=awaited, parameters=parameters, arguments=arguments, **own)
    namespace = {}
    exec(compile(source, "<sa_profile.track>", "exec"), namespace)
    return namespace["wrap"]


def _unused_name(name, parameters):
    """Returns the name, extended until no parameter has it."""
    while name in parameters:
        name += "_"
    return name


def wrap_call_with_args(function, spans):
    """Wraps a function so that each call has a span with its own args."""

    @wraps(function)
    def call(*args, **kwargs):
        if not _sa_profile.is_enabled(spans.level):
            return function(*args, **kwargs)
        span_args = spans.args(args, kwargs)
        with spans.span(span_args):
            result = function(*args, **kwargs)
            if spans.has_result_args:
                span_args.update(spans.result_args(result))
            return result

    return call


def wrap_coroutine_with_args(function, spans):
    """Wraps a coroutine function so that each call has a span with its own args."""

    @wraps(function)
    async def coroutine(*args, **kwargs):
        if not _sa_profile.is_enabled(spans.level):
            return await function(*args, **kwargs)
        span_args = spans.args(args, kwargs)
        with spans.span(span_args):
            result = await function(*args, **kwargs)
            if spans.has_result_args:
                span_args.update(spans.result_args(result))
            return result

    return coroutine


def wrap_generator(function, spans):
    """Wraps a generator function so that each generator has a span."""

    @wraps(function)
    def generator(*args, **kwargs):
        inner = function(*args, **kwargs)
        items = _Items(spans, args, kwargs)
        try:
            item = next(inner)
            while True:
                items.add(item)
                try:
                    sent = yield item
                except GeneratorExit:
                    items.close()
                    inner.close()
                    raise
                except BaseException as error:
                    item = inner.throw(error)
                else:
                    item = next(inner) if sent is None else inner.send(sent)
        except StopIteration as stop:
            items.end()
            return stop.value
        except BaseException as error:
            items.fail(error)
            raise

    # `types.coroutine` sets this flag on generators that can be awaited.
    code = getattr(function, "__code__", generator.__code__)
    generator.__code__ = generator.__code__.replace(co_flags=generator.__code__.co_flags | code.co_flags & _ITERABLE_COROUTINE)
    return generator


def wrap_async_generator(function, spans):
    """Wraps an async generator function so that each generator has a span."""

    @wraps(function)
    async def generator(*args, **kwargs):
        inner = function(*args, **kwargs)
        items = _Items(spans, args, kwargs)
        try:
            item = await anext(inner)
            while True:
                items.add(item)
                try:
                    sent = yield item
                except GeneratorExit:
                    items.close()
                    await inner.aclose()
                    raise
                except BaseException as error:
                    item = await inner.athrow(error)
                else:
                    item = await (anext(inner) if sent is None else inner.asend(sent))
        except StopAsyncIteration:
            items.end()
        except BaseException as error:
            items.fail(error)
            raise

    return generator


class _Items:
    """The span of one generator, and the number of items it has yielded."""

    def __init__(self, spans, args, kwargs):
        self._spans = spans
        self._span = spans.async_span(args, kwargs)
        self._is_recording = self._span.is_recording()
        self._count = 0
        self._last = None

    def add(self, item):
        if self._is_recording:
            self._span.instant(f"{self._spans.name}.item", index=self._count, **self._spans.item_args(item))
            if self._spans.has_result_args:
                self._last = item
        self._count += 1

    def end(self, **args):
        more = self._spans.last_item_args(self._last) if self._last is not None else {}
        self._last = None
        self._span.end(**{**more, "items": self._count, **args})

    def close(self):
        """Ends the span of a generator that its consumer closed early."""
        self.end(closed=True)

    def fail(self, error):
        self.end(error=type(error).__name__)
