from sglang.srt.managers.io_struct import BatchTokenizedGenerateReqInput, TokenizedGenerateReqInput, sock_recv


class SchedulerRequestReceiver:
    def __init__(self, recv_from_tokenizer):
        self.recv_from_tokenizer = recv_from_tokenizer

    def recv_requests(self, local_reqs=None):
        received = list(local_reqs or ())
        while len(self.recv_from_tokenizer):
            received.append(sock_recv(self.recv_from_tokenizer))
        self.unwrap_pickle_wrapper(received)
        return received

    def unwrap_pickle_wrapper(self, recv_reqs):
        for req in recv_reqs:
            if isinstance(req, TokenizedGenerateReqInput):
                req.unwrap_pickle_fields()
            elif isinstance(req, BatchTokenizedGenerateReqInput):
                for sub_req in req:
                    sub_req.unwrap_pickle_fields()
