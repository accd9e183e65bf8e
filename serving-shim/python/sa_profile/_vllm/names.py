"""Names of processes, as vLLM titles them (APIServer, EngineCore_DP0, Worker_TP3)."""

import multiprocessing
import os
import re

ENGINE = re.compile(r"EngineCore_DP(\d+)\0*$")


def title():
    """Returns the title that vLLM has set for this process, without its prefix, or `None` if it has set none."""
    try:
        import setproctitle
    except ImportError:
        return None
    prefix = os.environ.get("VLLM_PROCESS_NAME_PREFIX", "VLLM") + "::"
    whole = setproctitle.getproctitle()
    return whole.removeprefix(prefix) if whole.startswith(prefix) else None


def _child():
    """Returns the name that the parent gave this process, as vLLM does for engine cores. Returns `None` in a process that is not a child."""
    process = multiprocessing.current_process()
    return None if process.name == "MainProcess" else process.name


def is_first_child():
    """Returns true if this is the first process that its parent created. No public attribute shows that: the name may be chosen freely, and then has no number."""
    return getattr(multiprocessing.current_process(), "_identity", ())[-1:] == (1,)


def is_engine():
    """Returns true if vLLM titles this process an engine core."""
    return (title() or "").startswith("EngineCore")


def engine_name():
    """Returns the name for an engine core's process, or `None` for an engine in the user's own process, which keeps its name."""
    return title() or _child()


def api_server_name():
    """Returns the name for a process that serves HTTP."""
    return title() or "APIServer"


def worker_name(worker):
    """Returns the name for a worker's process. Ray sets its own title, so the name is built from the ranks there."""
    name = title()
    if name is None and _child() is None and "RAY_JOB_ID" not in os.environ:
        return None
    if name is not None and not name.startswith("Worker"):
        return name
    ranks = (name or "").removeprefix("Worker")
    if not ranks:
        ranks = "".join(f"_{axis}{rank}" for axis, rank, size in _ranks(worker) if size > 1)
    return "Worker" + ("" if "_DP" in ranks else _engine_suffix(worker)) + ranks


def _ranks(worker):
    """Yields (axis, rank, size) of the data, pipeline and tensor parallel groups, in the order of vLLM's titles."""
    parallel = getattr(worker, "parallel_config", None)
    tensor = getattr(parallel, "tensor_parallel_size", 1) or 1
    pipeline = getattr(parallel, "pipeline_parallel_size", 1) or 1
    rank = getattr(worker, "rank", 0) or 0
    yield "DP", getattr(parallel, "data_parallel_rank", 0) or 0, getattr(parallel, "data_parallel_size", 1) or 1
    yield "PP", rank // tensor % pipeline, pipeline
    yield "TP", rank % tensor, tensor


def _engine_suffix(worker):
    """Returns `_DP1` or the like for a worker of one of several engines. Workers of a dense model do not know of other engines, so this uses the title of the parent process."""
    found = ENGINE.search(_parent_title())
    if found is not None:
        return f"_DP{found[1]}"
    index = getattr(getattr(worker, "parallel_config", None), "data_parallel_index", 0)
    return f"_DP{index}" if isinstance(index, int) and index > 0 else ""


def _parent_title():
    try:
        with open(f"/proc/{os.getppid()}/cmdline", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
