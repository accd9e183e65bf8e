"""Process names as vLLM titles them: APIServer, EngineCore_DP0, Worker_TP3."""

import multiprocessing
import os


def title():
    """What vLLM has set as this process's title, without its prefix; `None` if it has set none."""
    try:
        import setproctitle
    except ImportError:
        return None
    prefix = os.environ.get("VLLM_PROCESS_NAME_PREFIX", "VLLM") + "::"
    whole = setproctitle.getproctitle()
    return whole.removeprefix(prefix) if whole.startswith(prefix) else None


def _child():
    """The name a parent gave this process, which vLLM does for engine cores; `None` in a process of its own."""
    process = multiprocessing.current_process()
    return None if process.name == "MainProcess" else process.name


def engine_name():
    """Of an engine core's process. An engine in the user's own process leaves its name as it is."""
    return title() or _child()


def api_server_name():
    """Of a process that serves HTTP."""
    return title() or "APIServer"


def worker_name(worker):
    """Of a worker's process. Ray gives the process its own title, so the ranks must do there."""
    name = title()
    if name and name != "Worker":
        return name
    if name is None and _child() is None and "RAY_JOB_ID" not in os.environ:
        return None
    return "Worker" + "".join(f"_{axis}{rank}" for axis, rank, size in _ranks(worker) if size > 1)


def _ranks(worker):
    """(axis, rank, size) of the data, pipeline and tensor parallel groups, in the order of vLLM's titles."""
    parallel = getattr(worker, "parallel_config", None)
    tensor = getattr(parallel, "tensor_parallel_size", 1) or 1
    pipeline = getattr(parallel, "pipeline_parallel_size", 1) or 1
    rank = getattr(worker, "rank", 0) or 0
    yield "DP", getattr(parallel, "data_parallel_rank", 0) or 0, getattr(parallel, "data_parallel_size", 1) or 1
    yield "PP", rank // tensor % pipeline, pipeline
    yield "TP", rank % tensor, tensor
