from collections import deque

from vllm.v1.core.sched.scheduler import Request, RequestStatus


class EngineCore:
    def __init__(self, scheduler, model_executor, queue=0, vllm_config=None):
        self.kv_cache = vllm_config and self._initialize_kv_caches(vllm_config)
        self.scheduler = scheduler
        self.model_executor = model_executor
        self.batch_queue = deque()
        self.batch_queue_size = queue
        self.step_fn = getattr(self, "step_with_batch_queue" if queue else "step", None)

    def _initialize_kv_caches(self, vllm_config):
        return vllm_config.sized

    def preprocess_add_request(self, request):
        return Request(request), 0

    def add_request(self, request, request_wave=0):
        self.scheduler.add_request(request)

    def abort_requests(self, request_ids):
        self.scheduler.finish_requests(request_ids, RequestStatus.FINISHED_ABORTED)

    def step(self):
        if not self.scheduler.has_requests():
            return {}, False
        scheduled = self.scheduler.schedule(False)
        result = self.model_executor.execute_model(scheduled, non_block=True)
        output = result.result() if hasattr(result, "result") else result
        if output is None:
            output = self.model_executor.sample_tokens(None)
        return self.scheduler.update_from_output(scheduled, output), True

    def post_step(self, model_executed):
        return None

    def step_with_batch_queue(self):
        if self.scheduler.has_requests():
            scheduled = self.scheduler.schedule(False)
            self.batch_queue.appendleft((self.model_executor.execute_model(scheduled, non_block=True), scheduled))
            if len(self.batch_queue) < self.batch_queue_size and scheduled.total_num_scheduled_tokens:
                return None, True
        if not self.batch_queue:
            return None, False
        future, scheduled = self.batch_queue.pop()
        return self.scheduler.update_from_output(scheduled, future.result()), True


class EngineCoreProc(EngineCore):
    """An engine core in its own process."""

    def process_input_sockets(self, requests):
        for one in requests:
            self.input_queue.put_nowait(one)

    def _process_input_queue(self):
        return None

    def busy_loop(self):
        while self.scheduler.has_requests():
            self._process_input_queue()
            _, executed = self.step_fn()
            self.post_step(executed)
