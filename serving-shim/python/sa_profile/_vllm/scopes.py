"""vLLM's own scopes (`gpu_model_runner: forward`, …) as spans, around whatever profiler the user has chosen for them."""

import contextlib
import functools
import sys

from .. import span
from .._hooks.chain import MARK, argument, chain_if_there
from .._hooks.warnings import quietly, warn_once

FUNCTION = "_PROFILER_FUNC"
FORWARD = "gpu_model_runner: forward"
CONTEXTS = ("set_forward_context", "set_ascend_forward_context")  # of vLLM, and of vLLM-Ascend
PER_REQUEST = frozenset({"schedule: allocate_slots"})  # once for each request of a step


class Scope:
    """A scope of the user's profiler inside a span of ours."""

    __slots__ = ("_span", "_theirs")

    def __init__(self, ours, theirs):
        self._span = ours
        self._theirs = theirs

    def __enter__(self):
        quietly(self._span.__enter__)
        try:
            return self._theirs.__enter__()
        except BaseException as error:
            quietly(self._span.__exit__, type(error), error, None)
            raise

    def __exit__(self, *error):
        try:
            return self._theirs.__exit__(*error)
        finally:
            quietly(self._span.__exit__, *error)


def hook(module):
    """Puts ours around what `vllm.v1.utils` would use."""
    if not hasattr(module, FUNCTION) or not hasattr(module, "record_function_or_nullcontext"):
        warn_once(f"this vLLM has no vllm.v1.utils.{FUNCTION}: of its own scopes only `{FORWARD}` is shown")
        return
    theirs = getattr(module, FUNCTION)
    if theirs is None:
        # Let vLLM choose as it would at its first scope: nothing, torch's record_function, or NVTX.
        module.record_function_or_nullcontext("sa_profile")
        theirs = getattr(module, FUNCTION)
    if isinstance(getattr(theirs, "__self__", None), Scopes):
        return
    scopes = Spans() if theirs is contextlib.nullcontext else Chained(theirs)
    setattr(module, FUNCTION, scopes.scope)


def hook_runner(runner):
    """Makes the model's scope for a runner of 0.9.1, which has none. The model itself stays as it is: it may be compiled yet, or its code copied.

    So the span is around the context that the runner's module enters on the host to call the model.
    """
    if hasattr(sys.modules.get("vllm.v1.utils"), FUNCTION):
        return
    module = sys.modules.get(getattr(getattr(runner, "execute_model", None), "__module__", None))
    for name in CONTEXTS:
        chain_if_there(module, name, span(FORWARD, cat="vllm", level="kernel"), within)


def within(context, ours):
    """The context inside a span, where it is entered for requests: without their metadata, it is a warm-up or a transfer of the cache."""

    @functools.wraps(context)
    def chained(*args, **kwargs):
        theirs = context(*args, **kwargs)
        return theirs if argument(args, kwargs, 0, "attn_metadata") is None else Scope(ours, theirs)

    setattr(chained, MARK, True)
    return chained


class Scopes(dict):
    """What opens a scope, by the scope's name."""

    def __missing__(self, name):
        ours = quietly(span, name, cat="vllm", level="verbose" if name in PER_REQUEST else "kernel")
        found = self[name] = contextlib.nullcontext() if ours is None else ours
        return found


class Spans(Scopes):
    """Spans alone. A step has a dozen scopes, and nothing of Python runs to open one."""

    @property
    def scope(self):
        return self.__getitem__


class Chained(Scopes):
    """Spans around the scopes of a profiler that the user has chosen."""

    def __init__(self, theirs):
        super().__init__()
        self._theirs = theirs

    def scope(self, name):
        return Scope(self[name], self._theirs(name))
