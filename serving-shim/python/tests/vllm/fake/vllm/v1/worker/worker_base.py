import contextlib
import os

import vllm.v1.utils as utils


@contextlib.contextmanager
def set_forward_context(attn_metadata, vllm_config, num_tokens=None):
    """Enters the context in which the model's layers find their metadata. Without `attn_metadata`, nothing is computed for requests."""
    yield


def scope(name):
    """Opens a scope. Older versions have no scopes."""
    return utils.record_function_or_nullcontext(name) if hasattr(utils, "_PROFILER_FUNC") else contextlib.nullcontext()


class Model:
    def __call__(self, tokens):
        return self.forward(tokens)

    def forward(self, tokens):
        return "model output"


class Runner:
    def __init__(self):
        self.model = Model()
        self.error = None

    def execute_model(self, scheduler_output, intermediate_tensors=None):
        with set_forward_context(None, None):
            pass  # a transfer of the cache does not run the model
        if self.error is not None:
            raise self.error
        with set_forward_context({}, vllm_config=None, num_tokens=1), scope("gpu_model_runner: forward"):
            return self.model(tokens=scheduler_output)

    def sample_tokens(self, grammar_output):
        return "tokens"


class Worker:
    def __init__(self):
        self.rank = 0
        self.model_runner = None

    def load(self):
        self.model_runner = Runner()

    def execute_model(self, scheduler_output):
        return self.model_runner.execute_model(scheduler_output)

    def sample_tokens(self, grammar_output):
        return self.model_runner.sample_tokens(grammar_output)


class OlderWrapper:
    """The wrapper of versions in which it does not define the step's methods itself."""

    def init_worker(self, all_kwargs):
        self.worker = Worker()

    def initialize_from_config(self, kv_cache_configs):
        return None

    def __getattr__(self, name):
        return getattr(self.worker, name)


class WorkerWrapperBase(OlderWrapper):
    def execute_model(self, scheduler_output):
        return self.worker.execute_model(scheduler_output)


if "FAKE_VLLM_OLDER_WORKER" in os.environ:  # in an older version the class is in another module, which this one imports
    import vllm.worker.worker_base

    del WorkerWrapperBase
