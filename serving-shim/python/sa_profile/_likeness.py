"""Makes a wrapper look like the function it wraps. Unlike `functools`, this imports no standard module: a file of the program may have the same name as one."""

import sys

_TAKEN = (
    "__module__",
    "__name__",
    "__qualname__",
    "__doc__",
    "__annotate__" if sys.version_info >= (3, 14) else "__annotations__",
    "__type_params__",
)


def like(function):
    """Returns a decorator that copies the function's name, docs and attributes to a wrapper."""

    def dress(wrapper):
        for name in _TAKEN:
            if hasattr(function, name):
                setattr(wrapper, name, getattr(function, name))
        vars(wrapper).update(getattr(function, "__dict__", {}))
        wrapper.__wrapped__ = function
        return wrapper

    return dress
