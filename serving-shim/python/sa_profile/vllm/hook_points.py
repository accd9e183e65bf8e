"""Lists which of the plugin's hook points each version of vLLM has. It only reads the sources, and imports or runs nothing of vLLM.

    python -m sa_profile.vllm.hook_points VLLM_0.31 VLLM_0.32 …

Each argument is a wheel of vLLM, or a folder that contains `vllm/`. Prints a table. Exits with 1 if a version lacks a required hook point.
"""

import sys

from .._hooks.sources import print_table
from .._vllm import rendering

# Names that the plugin wraps or reads: (module, class or None for the module itself, attribute).
POINTS = [
    ("vllm.v1.engine.core", "EngineCore", "add_request"),
    ("vllm.v1.engine.core", "EngineCore", "step"),
    ("vllm.v1.engine.core", "EngineCore", "step_with_batch_queue"),
    ("vllm.v1.core.sched.scheduler", "Scheduler", "schedule"),
    ("vllm.v1.core.sched.scheduler", "Scheduler", "update_from_output"),
    ("vllm.v1.core.sched.scheduler", "Scheduler", "finish_requests"),
    ("vllm.v1.core.sched.scheduler", "Scheduler", "get_request_counts"),
    ("vllm.v1.core.sched.output", "SchedulerOutput", "num_scheduled_tokens"),
    ("vllm.v1.core.sched.output", "SchedulerOutput", "scheduled_spec_decode_tokens"),
    ("vllm.v1.executor.multiproc_executor", "MultiprocExecutor", "execute_model"),
    ("vllm.v1.worker.gpu_model_runner", "GPUModelRunner", "execute_model"),
    ("vllm.v1.engine.async_llm", "AsyncLLM", "add_request"),
    ("vllm.v1.engine.async_llm", "AsyncLLM", "generate"),
    ("vllm.v1.engine.async_llm", "AsyncLLM", "encode"),
    ("vllm.v1.engine.async_llm", "AsyncLLM", "start_profile"),
    ("vllm.v1.engine.async_llm", "AsyncLLM", "stop_profile"),
    ("vllm.v1.engine.llm_engine", "LLMEngine", "__init__"),
    ("vllm.v1.engine.output_processor", "OutputProcessor", "add_request"),
    ("vllm.v1.engine.output_processor", "OutputProcessor", "process_outputs"),
    ("vllm.v1.engine.output_processor", "OutputProcessor", "abort_requests"),
    ("vllm.v1.engine.output_processor", "OutputProcessorOutput", "reqs_to_abort"),
    ("vllm.v1.utils", None, "_PROFILER_FUNC"),
    ("vllm.v1.utils", None, "record_function_or_nullcontext"),
]

# Names that only some versions have. The plugin does not warn if they are missing.
OPTIONAL = [
    ("vllm.v1.engine.core", "EngineCore", "_initialize_kv_caches"),
    ("vllm.v1.engine.core", "EngineCore", "preprocess_add_request"),
    ("vllm.v1.core.sched.scheduler", "Scheduler", "get_kv_cache_usage"),
    ("vllm.v1.core.sched.output", "SchedulerOutput", "preempted_req_ids"),
    ("vllm.v1.core.sched.output", "CachedRequestData", "resumed_req_ids"),
    ("vllm.v1.core.sched.output", "CachedRequestData", "num_output_tokens"),
    ("vllm.v1.engine", "EngineCoreOutput", "prefill_stats"),
    ("vllm.v1.engine", "EngineCoreRequest", "external_req_id"),
    ("vllm.v1.executor.multiproc_executor", "MultiprocExecutor", "sample_tokens"),
    ("vllm.v1.executor.multiproc_executor", "WorkerProc", "enqueue_output"),
    ("vllm.v1.worker.worker_base", "WorkerWrapperBase", "init_worker"),
    ("vllm.v1.worker.worker_base", "WorkerWrapperBase", "initialize_from_config"),
    ("vllm.v1.worker.worker_base", "WorkerWrapperBase", "execute_model"),
    ("vllm.v1.worker.gpu_model_runner", "GPUModelRunner", "sample_tokens"),
    ("vllm.utils.system_utils", None, "set_process_title"),
    *rendering.HANDLERS,
    *rendering.RENDERERS,
    *rendering.POOLED,
    ("vllm.v1.engine.core", "EngineCoreProc", "_process_input_queue"),
    ("vllm.v1.engine.input_processor", "InputProcessor", "process_inputs"),
    ("vllm.v1.metrics.loggers", "StatLoggerManager", "record"),
    ("vllm.v1.serial_utils", "MsgpackEncoder", "encode"),
    ("vllm.v1.serial_utils", "MsgpackEncoder", "encode_into"),
    ("vllm.v1.serial_utils", "MsgpackDecoder", "decode"),
    ("vllm.v1.structured_output", "StructuredOutputManager", "_create_grammar"),
    ("vllm.v1.structured_output", "StructuredOutputManager", "grammar_bitmask"),
    ("vllm.v1.core.block_pool", "BlockPool", "get_new_blocks"),
    ("vllm.v1.core.block_pool", "BlockPool", "evict_blocks"),
    ("vllm.v1.core.block_pool", "BlockHashToBlockMap", "__len__"),
    ("vllm.v1.core.single_type_kv_cache_manager", "MambaManager", "_cache_partial_tail_block"),
    ("vllm.engine.arg_utils", "EngineArgs", "create_engine_config"),
    ("vllm.forward_context", None, "set_forward_context"),
    ("vllm.v1.metrics.stats", "SchedulerStats", "prefix_cache_stats"),
    # Names that older versions have instead of some of these.
    ("vllm.v1.core.kv_cache_manager", "KVCacheManager", "usage"),
    ("vllm.v1.core.kv_cache_manager", "KVCacheManager", "free"),
    ("vllm.v1.core.sched.output", "CachedRequestData", "resumed_from_preemption"),
    ("vllm.v1.engine", "EngineCoreOutput", "num_cached_tokens"),
    ("vllm.worker.worker_base", "WorkerWrapperBase", "init_worker"),
    ("vllm.worker.worker_base", "WorkerWrapperBase", "initialize_from_config"),
    ("vllm.v1.engine.processor", "Processor", "process_inputs"),
    ("vllm.v1.engine.async_llm", "AsyncLLM", "_record_stats"),
    ("vllm.v1.engine.core", "EngineCoreProc", "process_input_sockets"),
    ("vllm.v1.structured_output", "StructuredOutputManager", "_async_create_grammar"),
]


def main(arguments):
    """Prints the table as Markdown and returns the exit code."""
    return print_table(__doc__, POINTS, OPTIONAL, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
