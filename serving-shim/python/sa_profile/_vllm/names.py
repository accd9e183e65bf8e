"""Names: of processes as vLLM titles them (APIServer, EngineCore_DP0, Worker_TP3), and of the flow of a request."""

import multiprocessing
import os
import re

REQUEST = "request"  # the flow that links a request's events in all processes
ENGINE = re.compile(r"EngineCore_DP(\d+)\0*$")


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


def is_first_child():
    """Whether its parent has created no process before this one. Nothing public says it: a name may be given, and has no number then."""
    return getattr(multiprocessing.current_process(), "_identity", ())[-1:] == (1,)


def is_engine():
    """Whether vLLM calls this process an engine core."""
    return (title() or "").startswith("EngineCore")


def engine_name():
    """Of an engine core's process. An engine in the user's own process leaves its name as it is."""
    return title() or _child()


def api_server_name():
    """Of a process that serves HTTP."""
    return title() or "APIServer"


def worker_name(worker):
    """Of a worker's process. Ray gives the process its own title, so the ranks must do there."""
    name = title()
    if name is None and _child() is None and "RAY_JOB_ID" not in os.environ:
        return None
    if name is not None and not name.startswith("Worker"):
        return name
    ranks = (name or "").removeprefix("Worker")
    if not ranks:
        ranks = "".join(f"_{axis}{rank}" for axis, rank, size in _ranks(worker) if size > 1)
    return "Worker" + ("" if "_DP" in ranks else _engine_of(worker)) + ranks


def _ranks(worker):
    """(axis, rank, size) of the data, pipeline and tensor parallel groups, in the order of vLLM's titles."""
    parallel = getattr(worker, "parallel_config", None)
    tensor = getattr(parallel, "tensor_parallel_size", 1) or 1
    pipeline = getattr(parallel, "pipeline_parallel_size", 1) or 1
    rank = getattr(worker, "rank", 0) or 0
    yield "DP", getattr(parallel, "data_parallel_rank", 0) or 0, getattr(parallel, "data_parallel_size", 1) or 1
    yield "PP", rank // tensor % pipeline, pipeline
    yield "TP", rank % tensor, tensor


def _engine_of(worker):
    """`_DP1` of the worker of one of several engines. vLLM tells a worker of a dense model of no other engine, so the title of its parent must do."""
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
