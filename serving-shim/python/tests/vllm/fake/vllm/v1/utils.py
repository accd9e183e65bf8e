import contextlib

_PROFILER_FUNC = None
scopes = []


class Theirs:
    """A profiler that the user has chosen for vLLM's scopes."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        scopes.append("+" + self.name)
        return self

    def __exit__(self, *_error):
        scopes.append("-" + self.name)


CHOSEN = contextlib.nullcontext


def record_function_or_nullcontext(name):
    global _PROFILER_FUNC
    if _PROFILER_FUNC is None:
        _PROFILER_FUNC = CHOSEN
    return _PROFILER_FUNC(name)
