"""Which of the plugin's hook points a version of vLLM has, read from its sources: nothing of it is imported or run.

    python -m sa_profile.vllm.hook_points VLLM_0.31 VLLM_0.32 …

Each argument is a wheel of vLLM, or a folder in which `vllm/` lies. Prints a table; exits 1 if a point is missing somewhere.
"""

import ast
import sys
import zipfile
from pathlib import Path

# (module, class or None for the module itself, attribute): what the plugin wraps, and what it reads.
POINTS = [
    ("vllm.v1.engine.core", "EngineCore", "add_request"),
    ("vllm.v1.engine.core", "EngineCore", "step"),
    ("vllm.v1.engine.core", "EngineCore", "step_with_batch_queue"),
    ("vllm.v1.core.sched.scheduler", "Scheduler", "schedule"),
    ("vllm.v1.core.sched.scheduler", "Scheduler", "update_from_output"),
    ("vllm.v1.core.sched.scheduler", "Scheduler", "finish_requests"),
    ("vllm.v1.core.sched.scheduler", "Scheduler", "get_request_counts"),
    ("vllm.v1.core.sched.scheduler", "Scheduler", "get_kv_cache_usage"),
    ("vllm.v1.core.sched.output", "SchedulerOutput", "num_scheduled_tokens"),
    ("vllm.v1.core.sched.output", "SchedulerOutput", "preempted_req_ids"),
    ("vllm.v1.core.sched.output", "SchedulerOutput", "scheduled_spec_decode_tokens"),
    ("vllm.v1.core.sched.output", "CachedRequestData", "resumed_req_ids"),
    ("vllm.v1.core.sched.output", "CachedRequestData", "num_output_tokens"),
    ("vllm.v1.engine", "EngineCoreOutput", "prefill_stats"),
    ("vllm.v1.engine", "EngineCoreRequest", "external_req_id"),
    ("vllm.v1.executor.multiproc_executor", "MultiprocExecutor", "execute_model"),
    ("vllm.v1.executor.multiproc_executor", "MultiprocExecutor", "sample_tokens"),
    ("vllm.v1.executor.multiproc_executor", "WorkerProc", "enqueue_output"),
    ("vllm.v1.worker.worker_base", "WorkerWrapperBase", "init_worker"),
    ("vllm.v1.worker.worker_base", "WorkerWrapperBase", "initialize_from_config"),
    ("vllm.v1.worker.worker_base", "WorkerWrapperBase", "execute_model"),
    ("vllm.v1.worker.gpu_model_runner", "GPUModelRunner", "execute_model"),
    ("vllm.v1.worker.gpu_model_runner", "GPUModelRunner", "sample_tokens"),
    ("vllm.v1.engine.async_llm", "AsyncLLM", "add_request"),
    ("vllm.v1.engine.async_llm", "AsyncLLM", "generate"),
    ("vllm.v1.engine.async_llm", "AsyncLLM", "encode"),
    ("vllm.v1.engine.async_llm", "AsyncLLM", "start_profile"),
    ("vllm.v1.engine.async_llm", "AsyncLLM", "stop_profile"),
    ("vllm.v1.engine.llm_engine", "LLMEngine", "__init__"),
    ("vllm.v1.engine.input_processor", "InputProcessor", "assign_request_id"),
    ("vllm.v1.engine.output_processor", "OutputProcessor", "add_request"),
    ("vllm.v1.engine.output_processor", "OutputProcessor", "process_outputs"),
    ("vllm.v1.engine.output_processor", "OutputProcessor", "abort_requests"),
    ("vllm.v1.engine.output_processor", "OutputProcessorOutput", "reqs_to_abort"),
    ("vllm.v1.utils", None, "_PROFILER_FUNC"),
    ("vllm.v1.utils", None, "record_function_or_nullcontext"),
    ("vllm.utils.system_utils", None, "set_process_title"),
]


class Sources:
    """The Python files of one vLLM."""

    def __init__(self, path):
        self.label = path.name.split("-")[1] if path.suffix == ".whl" else path.name
        self._wheel = zipfile.ZipFile(path) if path.is_file() else None
        self._folder = path
        self._trees = {}

    def _text(self, file):
        if self._wheel is not None:
            return self._wheel.read(file).decode() if file in self._wheel.namelist() else None
        found = self._folder / file
        return found.read_text() if found.exists() else None

    def tree(self, module):
        """The module's syntax tree, `None` if there is no such module."""
        if module not in self._trees:
            base = module.replace(".", "/")
            texts = (self._text(name) for name in (f"{base}.py", f"{base}/__init__.py"))
            text = next((text for text in texts if text is not None), None)
            self._trees[module] = None if text is None else ast.parse(text)
        return self._trees[module]

    def has(self, module, owner, attribute):
        """Whether a module, or a class in it, defines a name."""
        body = getattr(self.tree(module), "body", ())
        if owner is not None:
            classes = [node for node in body if isinstance(node, ast.ClassDef) and node.name == owner]
            body = [node for one in classes for node in one.body]
        return any(attribute in _names(node) for node in body)


def _names(node):
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, ast.AnnAssign):
        return {getattr(node.target, "id", None)}
    if isinstance(node, ast.Assign):
        return {getattr(target, "id", None) for target in node.targets}
    return set()


def table(versions):
    """Rows of the table, and how many points are missing in all."""
    rows, missing = [["hook point", *(one.label for one in versions)]], 0
    for module, owner, attribute in POINTS:
        found = [one.has(module, owner, attribute) for one in versions]
        missing += found.count(False)
        name = f"`{owner}.{attribute}`" if owner else f"`{module}.{attribute}`"
        rows.append([name, *("yes" if one else "**no**" for one in found)])
    return rows, missing


def main(arguments):
    """Prints the table as Markdown."""
    paths = [Path(one) for one in arguments]
    if not paths or not all(path.exists() for path in paths):
        print(__doc__, file=sys.stderr)
        return 2
    rows, missing = table([Sources(path) for path in paths])
    rows.insert(1, ["---"] * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
