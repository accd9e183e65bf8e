from dataclasses import dataclass, field


@dataclass
class OutputProcessorOutput:
    request_outputs: list = field(default_factory=list)
    reqs_to_abort: list = field(default_factory=list)


class OutputProcessor:
    """Passes each output to the queue of its request. `stop` contains ids of requests that a stop string ends."""

    def __init__(self):
        self.queues, self.stop = {}, set()

    def add_request(self, request, prompt, parent_req=None, request_index=0, queue=None):
        self.queues[request.request_id] = queue

    def process_outputs(self, engine_core_outputs, engine_core_timestamp=None, iteration_stats=None):
        result = OutputProcessorOutput()
        for output in engine_core_outputs:
            queue = self.queues.get(output.request_id)
            stopped = output.request_id in self.stop
            if stopped:
                result.reqs_to_abort.append(output.request_id)
            if output.finish_reason is not None or stopped:
                self.queues.pop(output.request_id, None)
            if queue is not None:
                queue.put_nowait((output, output.finish_reason is not None or stopped))
        return result

    def propagate_error(self, e):
        for queue in self.queues.values():
            queue.put_nowait(e)

    def abort_requests(self, request_ids, internal):
        return [one for one in request_ids if self.queues.pop(one, None) is not None]
