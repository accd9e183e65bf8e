"""Structured output: its grammars are compiled on threads of the engine, and each step's bit mask is filled from them."""

from .._sa_profile import is_enabled, open_span
from .._hooks.chain import argument, chain_if_there


def hook(module):
    """Hooks the class of `vllm.v1.structured_output`."""
    manager = getattr(module, "StructuredOutputManager", None)
    # Before 0.13 it had the second name.
    chain_if_there(manager, "_create_grammar", create) or chain_if_there(manager, "_async_create_grammar", create)
    chain_if_there(manager, "grammar_bitmask", fill)


def create(_manager, *args, **kwargs):
    """Observes the compilation of a request's grammar, usually on a separate thread. The request waits for it."""
    if not is_enabled():
        return None
    request_id = getattr(argument(args, kwargs, 0, "request"), "request_id", None)
    return open_span("StructuredOutputManager.create_grammar", cat="grammar", request_id=request_id).leave


def fill(_manager, *args, **kwargs):
    """Observes a step's bit mask being filled. The step's other requests wait for those with a grammar."""
    if not is_enabled():
        return None
    ids = argument(args, kwargs, 1, "structured_output_request_ids")  # a dict in older versions
    if not ids:
        return None  # there is nothing to do, but older versions call it in each step
    return open_span("StructuredOutputManager.grammar_bitmask", cat="grammar", request_ids=list(ids)).leave
