from vllm import without


@without
class InputProcessor:
    @staticmethod
    def assign_request_id(request):
        request.external_req_id = request.request_id
        request.request_id = request.external_req_id + "-1a2b3c4d"
