"""As in versions where the wrapper has no step of its own."""


class WorkerWrapperBase:
    def init_worker(self, all_kwargs):
        from vllm.v1.worker.worker_base import Worker

        self.worker = Worker()

    def initialize_from_config(self, kv_cache_configs):
        return None

    def __getattr__(self, name):
        return getattr(self.worker, name)
