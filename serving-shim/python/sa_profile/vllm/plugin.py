"""The entry point of the plugin: decides whether to record, and waits for vLLM's modules."""

from ..env import environment
from .chain import quietly

SWITCHES = ("SA_PROFILE_DIR", "SA_PROFILE_OUTPUT", "SA_PROFILE_LEVEL")
_registered = False


def configured(variables=None):
    """Whether the environment asks for recording, also for one that begins paused."""
    found = environment() if variables is None else variables
    return any(name in found for name in SWITCHES)


def register():
    """Hooks vLLM in this process. vLLM may call it often; nothing happens without a `SA_PROFILE_*` variable."""
    global _registered
    if _registered or not configured():
        return
    _registered = True
    quietly(_hook)


def _hook():
    from . import engine, frontend, http, scopes, worker
    from .imports import when_imported

    when_imported("vllm.v1.engine.core", engine.hook)
    when_imported("vllm.v1.worker.worker_base", worker.hook)
    when_imported("vllm.v1.executor.multiproc_executor", worker.hook_process)
    when_imported("vllm.v1.engine.async_llm", frontend.hook_client)
    when_imported("vllm.v1.engine.llm_engine", frontend.hook_offline)
    when_imported("vllm.v1.engine.input_processor", frontend.hook_input)
    when_imported("vllm.v1.engine.output_processor", frontend.hook_output)
    when_imported("vllm.v1.utils", scopes.hook)
    when_imported("uvicorn.config", http.hook)
    when_imported("uvicorn.protocols.http.httptools_impl", http.hook_protocol)
