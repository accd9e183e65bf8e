"""The entry point of the plugin: decides whether to record, and hooks vLLM's modules when they are imported."""

from ..env import asks_to_record
from .._hooks.warnings import name_engine, quietly

_registered = False


def register():
    """Hooks vLLM in this process. vLLM may call it several times. Without a `SA_PROFILE_*` variable it does nothing."""
    global _registered
    if _registered or not asks_to_record():
        return
    _registered = True
    name_engine("vLLM")
    quietly(_hook)


def _hook():
    from .._engine import server_hooks
    from .._hooks.imports import when_imported
    from . import announcement, engine, frontend, grammar, names, rendering, scopes, transport, worker

    server_hooks.watch(names.api_server_name)
    when_imported("vllm.engine.arg_utils", announcement.hook)
    when_imported("vllm.v1.engine.core", engine.hook)
    when_imported("vllm.v1.worker.worker_base", worker.hook)
    when_imported(worker.OLDER, worker.hook)
    when_imported("vllm.v1.executor.multiproc_executor", worker.hook_process)
    when_imported("vllm.v1.engine.async_llm", frontend.hook_client)
    when_imported("vllm.v1.engine.llm_engine", frontend.hook_offline)
    when_imported("vllm.v1.engine.input_processor", frontend.hook_input)
    when_imported("vllm.v1.engine.processor", frontend.hook_older_input)
    when_imported("vllm.v1.engine.output_processor", frontend.hook_output)
    when_imported("vllm.v1.metrics.loggers", frontend.hook_statistics)
    when_imported("vllm.v1.serial_utils", transport.hook)
    when_imported("vllm.v1.structured_output", grammar.hook)
    when_imported("vllm.v1.utils", scopes.hook)
    for module in rendering.modules():
        when_imported(module, rendering.hook)
