"""Names of the settings that are recorded, and where vLLM keeps them."""

import sys

from .._engine.settings import attribute, installed_version, module_version, record

# Path of each setting in vLLM's configuration.
SERVER_SETTINGS = {
    "api_server_count": "parallel_config._api_process_count",
    "data_parallel_size": "parallel_config.data_parallel_size",
}
ENGINE_SETTINGS = {
    **SERVER_SETTINGS,
    "tensor_parallel_size": "parallel_config.tensor_parallel_size",
    "pipeline_parallel_size": "parallel_config.pipeline_parallel_size",
    "max_num_seqs": "scheduler_config.max_num_seqs",
    "max_num_batched_tokens": "scheduler_config.max_num_batched_tokens",
    "async_scheduling": "scheduler_config.async_scheduling",
    "max_model_len": "model_config.max_model_len",
    "kv_block_size": "cache_config.block_size",
    "enable_prefix_caching": "cache_config.enable_prefix_caching",
    "graph_mode": "compilation_config.cudagraph_mode",
    "capture_sizes": "compilation_config.cudagraph_capture_sizes",
    "kv_role": "kv_transfer_config.kv_role",
}


def record_server(config):
    """Records the settings that an API server knows."""
    _record(config, SERVER_SETTINGS)


def record_engine(config, kv_cache):
    """Records the settings of an engine core. `kv_cache` is the result of sizing the cache: its configuration, or before 0.18 a tuple that starts with the number of blocks."""
    blocks = (kv_cache[:1] or [None])[0] if isinstance(kv_cache, tuple) else attribute(kv_cache, "num_blocks")
    _record(config, ENGINE_SETTINGS, num_kv_blocks=blocks)


def _record(config, paths, **more):
    ascend = "vllm_ascend" in sys.modules
    record(
        config, paths, engine="vllm-ascend" if ascend else "vllm", engine_version=module_version("vllm"),
        vllm_ascend_version=installed_version("vllm_ascend") if ascend else None, **more,
    )
