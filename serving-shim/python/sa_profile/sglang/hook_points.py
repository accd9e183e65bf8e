"""Lists which of the plugin's hook points each version of SGLang has. It only reads the sources, and imports or runs nothing of SGLang.

    python -m sa_profile.sglang.hook_points SGLANG_0.5.18 SGLANG_0.5.23 …

Each argument is a wheel of SGLang, or a folder that contains `sglang/`. Prints a table. Exits with 1 if a version lacks a required hook point.
"""

import sys

from .._hooks.sources import print_table

MANAGERS = "sglang.srt.managers"
COMPONENTS = f"{MANAGERS}.scheduler_components"
PROFILER = f"{COMPONENTS}.profiler_manager"
FORWARD_MODE = "sglang.srt.model_executor.forward_batch_info"
TIMES = "sglang.srt.observability.req_time_stats"

# Names that the plugin wraps or reads: (module, class or None for the module itself, attribute).
POINTS = [
    (f"{MANAGERS}.scheduler", None, "setproctitle"),
    *((f"{MANAGERS}.scheduler", "Scheduler", name) for name in (
        "__init__", "handle_generate_request", "handle_embedding_request", "_add_request_to_queue", "run_batch",
        "process_batch_result", "forward_ct", "waiting_queue", "running_batch", "last_batch", "enable_overlap", "spec_algorithm",
        "tree_cache", "token_to_kv_pool_allocator", "max_total_num_tokens", "max_running_requests",
    )),
    *((f"{MANAGERS}.schedule_batch", "ScheduleBatch", name) for name in ("reqs", "forward_mode", "extend_num_tokens", "decoding_reqs")),
    *((f"{MANAGERS}.schedule_batch", "Req", name) for name in (
        "rid", "origin_input_ids", "output_ids", "output_ids_through_stop", "finished_reason", "cached_tokens", "is_retracted", "time_stats",
    )),
    *((FORWARD_MODE, "ForwardMode", name) for name in ("is_extend", "is_decode")),
    *((f"{MANAGERS}.utils", "GenerationBatchResult", name) for name in ("can_run_cuda_graph", "next_token_ids")),
    *(("sglang.srt.model_executor.model_runner", "ModelRunner", name) for name in ("forward", "sample")),
    *((f"{MANAGERS}.tokenizer_manager", "TokenizerManager", name) for name in (
        "__init__", "generate_request", "_tokenize_one_request", "_send_one_request", "_send_batch_request", "_handle_batch_output", "_handle_abort_req",
        "rid_to_state", "served_model_name",
    )),
    *((f"{MANAGERS}.io_struct", "BatchStrOutput", name) for name in ("finished_reasons", "completion_tokens", "cached_tokens")),
    (f"{MANAGERS}.io_struct", "BatchTokenIDOutput", "finished_reasons"),
    *((f"{MANAGERS}.io_struct", "TokenizedGenerateReqInput", name) for name in ("input_ids", "sampling_params", "lora_id")),
    (f"{MANAGERS}.detokenizer_manager", None, "run_detokenizer_process"),
    (f"{MANAGERS}.detokenizer_manager", "DetokenizerManager", "handle_batch_token_id_out"),
    (f"{MANAGERS}.data_parallel_controller", None, "run_data_parallel_controller_process"),
    (f"{MANAGERS}.data_parallel_controller", "DataParallelController", "dispatching_with_trace"),
    ("sglang.srt.mem_cache.radix_cache", "RadixCache", "evict"),
    ("sglang.srt.mem_cache.radix_cache", "RadixCache", "evictable_size"),
]  # fmt: skip

# Names that only some versions have. The plugin does not warn if they are missing.
OPTIONAL = [
    ("sglang.srt.plugins", None, "load_plugins"),
    (f"{MANAGERS}.scheduler", None, "load_plugins"),
    (f"{MANAGERS}.detokenizer_manager", None, "load_plugins"),
    (f"{MANAGERS}.data_parallel_controller", None, "load_plugins"),
    ("sglang.srt.runtime_context", None, "get_parallel"),
    *((f"{MANAGERS}.scheduler", "Scheduler", name) for name in ("send_abort_output", "on_idle", "_record_scheduler_state_for_paused_engine", "grammar_manager", "ps")),
    (f"{COMPONENTS}.output_streamer", "SchedulerOutputStreamer", "stream_output"),
    (f"{COMPONENTS}.output_sender", "SenderWrapper", "send_output"),
    *((f"{MANAGERS}.schedule_batch", "Req", f"cached_tokens_{tier}") for tier in ("device", "host", "storage")),
    *((f"{MANAGERS}.utils", "GenerationBatchResult", name) for name in (
        "accept_lens", "num_correct_drafts_per_req_cpu", "speculative_num_draft_tokens",
    )),
    *((TIMES, "APIServerReqTimeStats", name) for name in ("created_time", "tokenize_finish_time", "first_token_time", "finished_time")),
    *((TIMES, "SchedulerReqTimeStats", name) for name in (
        "wait_queue_entry_time", "forward_entry_time", "last_forward_entry_time", "prefill_finished_time", "completion_time",
    )),
    *((PROFILER, "SchedulerProfilerManager", name) for name in ("_init_profile", "_start_profile", "_profile")),
    ("sglang.srt.mem_cache.unified_radix_cache", "UnifiedRadixCache", "evict"),
    ("sglang.srt.mem_cache.unified_radix_cache", "UnifiedRadixCache", "evict_for_alloc"),
    ("sglang.srt.constrained.grammar_manager", "GrammarManager", "grammar_queue"),
    # Names that older versions have instead of some of these.
    (f"{MANAGERS}.scheduler_output_processor_mixin", "SchedulerOutputProcessorMixin", "stream_output"),
    (f"{MANAGERS}.scheduler", "SenderWrapper", "send_output"),
    *((f"{MANAGERS}.scheduler_profiler_mixin", "SchedulerProfilerMixin", name) for name in ("init_profile", "start_profile", "profile")),
    *((f"{MANAGERS}.scheduler", "Scheduler", name) for name in ("grammar_queue", "self_check_during_idle", "tp_rank", "attn_tp_rank", "pp_rank", "dp_rank")),
    (f"{MANAGERS}.utils", "GenerationBatchResult", "accept_length_per_req_cpu"),
    *(("sglang.srt.metrics.collector", "TimeStats", name) for name in ("wait_queue_entry_time", "forward_entry_time", "completion_time")),
    *((f"{MANAGERS}.tokenizer_manager", "ReqState", name) for name in ("created_time", "first_token_time", "finished_time")),
]  # fmt: skip


def main(arguments):
    """Prints the table as Markdown and returns the exit code."""
    return print_table(__doc__, POINTS, OPTIONAL, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
