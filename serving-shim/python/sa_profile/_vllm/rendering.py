"""Records a request's way from its HTTP handler to the engine's client: chat template and tokeniser, and the waits for their thread pool.

A handler runs in its own task and awaits further ones. The arg `exchange` of a span is the number of its `http.request`.

These spans are recorded only at level `verbose`. Their sum is `request.preprocess`, which is always recorded.
"""

from .. import span
from .._sa_profile import is_enabled, open_span
from .._hooks.chain import chain_if_there, chain_in_detail, inside
from .._http import asgi

# Handlers of the API's routes, in current and older modules: (module, class, function).
HANDLERS = [
    ("vllm.entrypoints.openai.chat_completion.serving", "OpenAIServingChat", "create_chat_completion"),
    ("vllm.entrypoints.openai.completion.serving", "OpenAIServingCompletion", "create_completion"),
    ("vllm.entrypoints.openai.responses.serving", "OpenAIServingResponses", "create_responses"),
    ("vllm.entrypoints.openai.serving_chat", "OpenAIServingChat", "create_chat_completion"),
    ("vllm.entrypoints.openai.serving_completion", "OpenAIServingCompletion", "create_completion"),
    ("vllm.entrypoints.openai.serving_responses", "OpenAIServingResponses", "create_responses"),
]
# Functions that turn a request into tokens, including the wait for the thread pool.
RENDERERS = [
    ("vllm.renderers.base", "BaseRenderer", "render_chat_async"),
    ("vllm.renderers.base", "BaseRenderer", "render_cmpl_async"),
    ("vllm.renderers.base", "BaseRenderer", "tokenize_prompts_async"),
    ("vllm.entrypoints.openai.serving_engine", "OpenAIServing", "_preprocess_chat"),
    ("vllm.entrypoints.renderer", "CompletionRenderer", "render_prompt"),
    ("vllm.utils.async_utils", "AsyncMicrobatchTokenizer", "__call__"),
]
# Functions that run on a thread of the pool: (module, class or None for the module itself, function).
POOLED = [
    ("vllm.renderers.base", "BaseRenderer", "_tokenize_prompt"),
    ("vllm.renderers.hf", None, "safe_apply_chat_template"),
    ("vllm.entrypoints.openai.serving_engine", None, "apply_hf_chat_template"),
]


def modules():
    """Returns the names of all modules that contain any of these functions."""
    return {module for module, *_ in HANDLERS + RENDERERS + POOLED}


def hook(module):
    """Hooks the functions in one of these modules. No version has all of them."""
    for owner, function, name in _functions_in(module, HANDLERS + RENDERERS):
        chain_in_detail(owner, function, _observe(name))
    for owner, function, name in _functions_in(module, POOLED):
        chain_if_there(owner, function, span(name, cat="render", level="verbose"), inside)


def _functions_in(module, points):
    """Yields the owner, the attribute and the span name of each function in this module."""
    for place, owner, function in points:
        if place == module.__name__:
            found = module if owner is None else getattr(module, owner, None)
            yield found, function, function if owner is None else f"{owner}.{function}"


def _observe(name):
    def observe(*_args, **_kwargs):
        if not is_enabled("verbose"):
            return None
        return open_span(name, cat="render", level="verbose", **asgi.exchange_arg()).leave

    return observe
