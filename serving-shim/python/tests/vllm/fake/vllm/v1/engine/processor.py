"""The module of versions before `input_processor`."""

from vllm.v1.engine import EngineCoreRequest


class Processor:
    def process_inputs(self, request_id, prompt, params, arrival_time):
        return str(prompt), EngineCoreRequest(request_id, prompt, params, arrival_time=arrival_time)
