"""What makes a wrapper look like the function in it. `functools` has the same, but what imports no module of Python works in every program: a file of it may have that name."""

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
    """A decorator that gives a wrapper what the function is known by."""

    def dress(wrapper):
        for name in _TAKEN:
            if hasattr(function, name):
                setattr(wrapper, name, getattr(function, name))
        vars(wrapper).update(getattr(function, "__dict__", {}))
        wrapper.__wrapped__ = function
        return wrapper

    return dress
