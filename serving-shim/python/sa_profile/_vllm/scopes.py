"""Records vLLM's own scopes (`gpu_model_runner: forward` and so on) as spans, in addition to any profiler that the user has chosen for them."""

import contextlib
import functools
import sys

from .. import span
from .._hooks.chain import MARK, argument, chain_if_there
from .._hooks.warnings import quietly, warn_once

FUNCTION = "_PROFILER_FUNC"
FORWARD = "gpu_model_runner: forward"
CONTEXTS = ("set_forward_context", "set_ascend_forward_context")  # in vLLM and in vLLM-Ascend
PER_REQUEST = frozenset({"schedule: allocate_slots"})  # once for each request of a step


class Scope:
    """A scope of the user's profiler inside one of our spans."""

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
    """Replaces the function that opens scopes in `vllm.v1.utils`."""
    if not hasattr(module, FUNCTION) or not hasattr(module, "record_function_or_nullcontext"):
        warn_once(f"this vLLM has no vllm.v1.utils.{FUNCTION}: of its own scopes only `{FORWARD}` is shown")
        return
    theirs = getattr(module, FUNCTION)
    if theirs is None:
        # Make vLLM choose now what it would choose at its first scope: nothing, torch's record_function, or NVTX.
        module.record_function_or_nullcontext("sa_profile")
        theirs = getattr(module, FUNCTION)
    if isinstance(getattr(theirs, "__self__", None), Scopes):
        return
    scopes = Spans() if theirs is contextlib.nullcontext else Chained(theirs)
    setattr(module, FUNCTION, scopes.scope)


def hook_runner(runner):
    """Records the model's scope for a runner of 0.9.1, which has none. The model itself stays unchanged, because it may still be compiled, or its code copied.

    Instead, the span wraps the context that the runner's module enters on the host to call the model.
    """
    if hasattr(sys.modules.get("vllm.v1.utils"), FUNCTION):
        return
    module = sys.modules.get(getattr(getattr(runner, "execute_model", None), "__module__", None))
    for name in CONTEXTS:
        chain_if_there(module, name, span(FORWARD, cat="vllm", level="kernel"), within)


def within(context, ours):
    """Wraps the context in a span if it is entered for requests. Without their metadata it is a warm-up or a transfer of the cache."""

    @functools.wraps(context)
    def chained(*args, **kwargs):
        theirs = context(*args, **kwargs)
        return theirs if argument(args, kwargs, 0, "attn_metadata") is None else Scope(ours, theirs)

    setattr(chained, MARK, True)
    return chained


class Scopes(dict):
    """Opens scopes, by name."""

    def __missing__(self, name):
        ours = quietly(span, name, cat="vllm", level="verbose" if name in PER_REQUEST else "kernel")
        found = self[name] = contextlib.nullcontext() if ours is None else ours
        return found


class Spans(Scopes):
    """Opens only spans. A step has a dozen scopes, and opening one runs no Python code."""

    @property
    def scope(self):
        return self.__getitem__


class Chained(Scopes):
    """Opens spans around the scopes of a profiler that the user has chosen."""

    def __init__(self, theirs):
        super().__init__()
        self._theirs = theirs

    def scope(self, name):
        return Scope(self[name], self._theirs(name))
