"""The module that contains the wrapper in older versions."""

from vllm.v1.worker.worker_base import OlderWrapper as WorkerWrapperBase  # noqa: F401
