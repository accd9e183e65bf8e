"""Records the settings of the engine once in each of its processes. It reads only the names listed here, because a command line or a path may contain secrets."""

import enum
import os
import platform
import sys

from .._sa_profile import engine_settings

MAX_SIZES = 256  # of a list
MAX_TEXT_LENGTH = 64
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
    blocks = (kv_cache[:1] or [None])[0] if isinstance(kv_cache, tuple) else _attribute(kv_cache, "num_blocks")
    _record(config, ENGINE_SETTINGS, num_kv_blocks=blocks)


def _record(config, paths, **more):
    found = {name: _attribute(config, path) for name, path in paths.items()}
    values = {name: _value(value) for name, value in {**_versions(), **found, **more}.items()}
    engine_settings({name: value for name, value in values.items() if value is not None})


def _attribute(config, path):
    """Returns the attribute at a dotted path, or `None` if a part of it is missing or cannot be read."""
    for name in path.split("."):
        try:
            config = getattr(config, name, None)
        except Exception:
            return None
    return config


def _value(found):
    """Returns a setting as the trace stores it, or `None` for anything other than a number, a short text or a list of integers."""
    if isinstance(found, enum.Enum):
        found = found.name
    if isinstance(found, (list, tuple)):
        return [size for size in found if type(size) is int][:MAX_SIZES]
    if isinstance(found, str):
        return str(found) if len(found) <= MAX_TEXT_LENGTH else None
    return found if isinstance(found, int) else None


def _versions():
    ascend = "vllm_ascend" in sys.modules
    return {
        "engine": "vllm-ascend" if ascend else "vllm",
        "engine_version": _version("vllm"),
        "vllm_ascend_version": _installed("vllm_ascend") if ascend else None,
        "torch_version": _version("torch"),
        "torch_npu_version": _version("torch_npu"),
        "cann_version": _cann_version(),
    }


def _version(module):
    return _attribute(sys.modules.get(module), "__version__")


def _installed(name):
    from importlib import metadata

    try:
        return metadata.version(name)
    except Exception:
        return None


def _cann_version():
    """Returns the version from the file that CANN's installer writes, or `None` without CANN."""
    home = os.environ.get("ASCEND_TOOLKIT_HOME") or os.environ.get("ASCEND_HOME_PATH")
    if not home:
        return None
    try:
        with open(f"{home}/{platform.machine()}-linux/ascend_toolkit_install.info", encoding="utf-8", errors="replace") as file:
            lines = file.read(4096).splitlines()
    except OSError:
        return None
    return next((line.partition("=")[2].strip() for line in lines if line.startswith("version=")), None)
