"""Names of the settings that are recorded, and where SGLang keeps them."""

from .._engine.settings import attribute, module_version, record

SERVER_SETTINGS = {
    "api_server_count": "tokenizer_worker_num",
    "data_parallel_size": "dp_size",
}
SCHEDULER_SETTINGS = {
    **SERVER_SETTINGS,
    "tensor_parallel_size": "tp_size",
    "pipeline_parallel_size": "pp_size",
}


def record_server(arguments):
    """Records the settings that the process with the tokenizer manager knows."""
    record(arguments, SERVER_SETTINGS, **_engine())


def record_scheduler(arguments, scheduler):
    """Records the settings of a scheduler, which has sized its cache."""
    chunk = attribute(arguments, "chunked_prefill_size")
    page, tokens = attribute(scheduler, "page_size"), attribute(scheduler, "max_total_num_tokens")
    mode = attribute(arguments, "disaggregation_mode")
    record(
        arguments, SCHEDULER_SETTINGS, **_engine(),
        max_num_seqs=attribute(scheduler, "max_running_requests"),
        max_num_batched_tokens=chunk if isinstance(chunk, int) and chunk > 0 else attribute(arguments, "max_prefill_tokens"),
        async_scheduling=attribute(scheduler, "enable_overlap"),
        max_model_len=attribute(scheduler, "model_config.context_len"),
        kv_block_size=page,
        num_kv_blocks=tokens // page if isinstance(tokens, int) and isinstance(page, int) and page > 0 else None,
        enable_prefix_caching=_not(attribute(arguments, "disable_radix_cache")),
        graph_mode="NONE" if attribute(arguments, "disable_cuda_graph") else attribute(arguments, "cuda_graph_config.decode.backend"),
        capture_sizes=attribute(arguments, "cuda_graph_config.decode.bs") or attribute(arguments, "cuda_graph_bs"),
        kv_role=None if mode in (None, "null") else mode,
    )


def _engine():
    return dict(engine="sglang", engine_version=module_version("sglang"))


def _not(value):
    return None if value is None else not value
