"""The entry point of the plugin: decides whether to record, and hooks SGLang's modules when they are imported."""

from ..env import asks_to_record
from .._hooks.warnings import name_engine, quietly

_registered = False


def register():
    """Hooks SGLang in this process. It may be called several times. Without a `SA_PROFILE_*` variable it does nothing."""
    global _registered
    if _registered or not asks_to_record():
        return
    _registered = True
    name_engine("SGLang")
    quietly(_hook)


def _hook():
    from .._engine import server_hooks
    from .._hooks.imports import when_imported
    from . import controller, detokenizer, frontend, processes, profiler, runner, scheduler

    server_hooks.watch(processes.server_name)
    when_imported("setproctitle", processes.hook_titles)
    when_imported("sglang.srt.entrypoints.http_server", processes.hook_server)
    when_imported("sglang.srt.managers.tokenizer_manager", frontend.hook)
    when_imported("sglang.srt.managers.scheduler", scheduler.hook)
    when_imported("sglang.srt.managers.detokenizer_manager", detokenizer.hook)
    when_imported("sglang.srt.managers.data_parallel_controller", controller.hook)
    when_imported("sglang.srt.model_executor.model_runner", runner.hook)
    for module in profiler.MODULES:
        when_imported(module, profiler.hook)
    when_imported("uvicorn._subprocess", processes.hook_workers)
