from vllm.v1.engine import EngineCoreRequest


class InputProcessor:
    def process_inputs(self, request_id, prompt, params, arrival_time):
        return EngineCoreRequest(request_id, prompt, params, arrival_time=arrival_time)

    @staticmethod
    def assign_request_id(request):
        request.external_req_id = request.request_id
        request.request_id = request.external_req_id + "-1a2b3c4d"
