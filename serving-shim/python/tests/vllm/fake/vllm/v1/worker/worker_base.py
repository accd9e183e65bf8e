import os

from vllm import without


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
        if self.error is not None:
            raise self.error
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


@without
class WorkerWrapperBase:
    def init_worker(self, all_kwargs):
        self.worker = Worker()

    def initialize_from_config(self, kv_cache_configs):
        return None

    def __getattr__(self, name):
        return getattr(self.worker, name)

    def execute_model(self, scheduler_output):
        return self.worker.execute_model(scheduler_output)


if os.environ.get("FAKE_VLLM_WITHOUT") == "WorkerWrapperBase":  # an older version: it is in another module, which this one imports
    import vllm.worker.worker_base

    del WorkerWrapperBase
