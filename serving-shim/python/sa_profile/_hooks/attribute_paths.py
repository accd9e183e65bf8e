"""Follows paths such as `result.batches[0].size` from a call's arguments or result to the args of its span. It only reads attributes and items, and evaluates nothing.

Imports no standard module, for the reason given in `_tracking`. `_thread` is a part of the interpreter.
"""

from _thread import get_ident

from .._tracking.function_spans import FunctionSpans, truncate
from .warnings import described, warn_once

FUNCTION: type = type(lambda: None)
# Flags of code objects, as `inspect` names them.
VARARGS, VARKEYWORDS = 0x4, 0x8
# Args with the ids of requests, from which the merge draws arrows. They are never cut.
REQUEST_IDS = ("request_id", "request_ids")
MAX_CHARS = 256
MAX_WRAPPERS = 32


class PathSpans(FunctionSpans):
    """Creates the spans of a function, with args that paths name."""

    def __init__(self, name, cat, level, paths, function):
        super().__init__(name, cat, level)
        parameters = _Parameters(function)
        values = [(_Path(name, *path), parameters.find(path[2]) if path[2] is not None else None) for path in paths]
        self._of_arguments = [(path, argument) for path, argument in values if argument is not None]
        self._of_result = [(path, _same) for path, argument in values if path.root is None]
        for path, argument in values:
            if argument is None and path.root is not None:
                path.report(f"the function has no parameter {path.root}")
        self.has_result_args = bool(self._of_result)
        self._reading_threads = set()

    def are_shared(self):
        return not self._of_arguments and not self._of_result

    def args(self, args, kwargs):
        return self._read(self._of_arguments, args, kwargs)

    def result_args(self, result):
        return self._read(self._of_result, result)

    def _read(self, paths, *values):
        """Returns the args of the paths. Each path comes with a function that returns the value it begins with, from the arguments or the result."""
        found, thread = {}, get_ident()
        if thread in self._reading_threads:
            return found  # the code of a property, which this thread is reading, calls the hooked function itself
        self._reading_threads.add(thread)
        try:
            for path, root in paths:
                try:
                    found[path.arg] = path.follow(root(*values))
                except Exception as error:
                    path.report(described(error))
        finally:
            self._reading_threads.discard(thread)
        return found

    def item_args(self, item):
        return {}

    last_item_args = result_args


def _same(value):
    return value


class _Path:
    """The path of one arg. `root` is the name or the position of a parameter, or None for the result."""

    def __init__(self, span, arg, text, root, steps, is_length):
        self.span = span
        self.arg = arg
        self.text = text
        self.root = root
        self.steps = steps
        self.is_length = is_length
        self.is_reported = False

    def follow(self, value):
        """Returns the arg's value. Raises what an attribute or an item raises."""
        value = _follow(value, self.steps, 0)
        if self.is_length:
            return len(value)
        if self.arg in REQUEST_IDS:
            return list(value) if isinstance(value, (list, tuple, dict, set, frozenset)) else value
        return truncate(value, MAX_CHARS)

    def report(self, problem):
        """Writes on stderr why the arg is missing, once."""
        if not self.is_reported:
            self.is_reported = True
            warn_once(f"spans {self.span} lack the arg {self.arg} (path {self.text}): {problem}")


def _follow(value, steps, start):
    for index in range(start, len(steps)):
        kind, name = steps[index]
        if kind == "attribute":
            value = getattr(value, name)
        elif kind == "each":
            items = value.values() if isinstance(value, dict) else _checked(value, (list, tuple), "a list, tuple or dict")
            return [_follow(item, steps, index + 1) for item in list(items)]
        elif kind == "index":
            value = _checked(value, (list, tuple), "a list or tuple")[name]
        else:
            value = _checked(value, dict, "a dict")[name]
    return value


def _checked(value, kinds, expected):
    """Returns the value. Items of other types could be the result of any code."""
    if not isinstance(value, kinds):
        raise TypeError(f"expected {expected}, found {type(value).__name__}")
    return value


class _Parameters:
    """The parameters of a function, or of the function that it wraps."""

    def __init__(self, function):
        for _ in range(MAX_WRAPPERS):
            wrapped = getattr(function, "__wrapped__", None)
            if not isinstance(wrapped, FUNCTION):
                break
            function = wrapped
        code = function.__code__
        self.positional = code.co_varnames[: code.co_argcount]
        others = list(code.co_varnames[code.co_argcount :])
        self.keyword = [others.pop(0) for _ in range(code.co_kwonlyargcount)]
        self.rest = others.pop(0) if code.co_flags & VARARGS else None
        self.others = others.pop(0) if code.co_flags & VARKEYWORDS else None
        values = function.__defaults__ or ()
        self.defaults = dict(zip(self.positional[len(self.positional) - len(values) :], values)) | (function.__kwdefaults__ or {})

    def find(self, parameter):
        """Returns a function that gets the argument for a parameter, given by name or position, from the arguments of a call. Returns None if there is no such parameter."""
        if isinstance(parameter, int):
            if parameter >= len(self.positional):
                return (lambda args, kwargs: args[parameter]) if self.rest else None
            parameter = self.positional[parameter]
        if parameter == self.rest:
            return lambda args, kwargs: args[len(self.positional) :]
        if parameter == self.others:
            return lambda args, kwargs: kwargs
        if parameter in self.keyword:
            return _argument(parameter, None, self.defaults)
        if parameter in self.positional:
            return _argument(parameter, self.positional.index(parameter), self.defaults)
        # A keyword that the function passes on.
        return _argument(parameter, None, {}) if self.others else None


def _argument(name, position, defaults):
    def argument(args, kwargs):
        if position is not None and position < len(args):
            return args[position]
        return kwargs[name] if name in kwargs else defaults[name]

    return argument
