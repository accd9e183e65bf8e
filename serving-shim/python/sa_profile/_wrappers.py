"""Creates functions that run another function within a span. Each has the same parameters as the wrapped function, so no tuple or dict of arguments is built. If nothing is recorded,
a call costs only a check and a further call. Imports no standard module, for the reason given in `_likeness`."""

from . import _sa_profile
from ._likeness import like

_FUNCTION: type = type(lambda: None)
# Flags of code objects, as `inspect` names them.
_VARARGS, _VARKEYWORDS = 0x4, 0x8
_MOST_MAKERS = 512
_makers: dict = {}

_IS_OFF = {
    "e2e": _sa_profile.is_off_e2e,
    "kernel": _sa_profile.is_off_kernel,
    "verbose": _sa_profile.is_off_verbose,
}
# Keywords for a wrapper of a function, and of a coroutine function.
_PLAIN = ("", "")
_COROUTINE = ("async ", "await ")
_TEMPLATE = """
def wrap({function}, {span}, {is_off}):
    {asynchronous}def call({parameters}):
        if {is_off}():
            return {awaited}{function}({arguments})
        with {span}:
            return {awaited}{function}({arguments})
    return call
"""


def wrap_plain(function, span, is_coroutine):
    """Wraps a function, or a coroutine function, so that it runs within the span."""
    words = _COROUTINE if is_coroutine else _PLAIN
    call = _maker(words, *_passed_on(function))(function, span, _IS_OFF[span.level])
    if isinstance(function, _FUNCTION):
        call.__defaults__, call.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return like(function)(call)


def _passed_on(function):
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


def _maker(*key):
    """Returns the function that creates wrappers for functions with these parameters."""
    if key not in _makers:
        if len(_makers) == _MOST_MAKERS:
            _makers.clear()
        _makers[key] = _make(*key)
    return _makers[key]


def _make(words, parameters, arguments):
    own = {name: _free(name, parameters) for name in ("function", "span", "is_off")}
    source = _TEMPLATE.format(asynchronous=words[0], awaited=words[1], parameters=parameters, arguments=arguments, **own)
    made = {}
    exec(compile(source, "<sa_profile.track>", "exec"), made)
    return made["wrap"]


def _free(name, parameters):
    """Returns the name, extended until no parameter has it."""
    while name in parameters:
        name += "_"
    return name
