from dataclasses import dataclass

TOKEN, STOP_TOKEN = 7, 2


class Tensor(list):
    """A list with the method of a tensor that SGLang calls."""

    def tolist(self):
        return list(self)


@dataclass
class ModelRunnerOutput:
    logits_output: object
    can_run_graph: bool


class ModelRunner:
    """Samples for each request the stop token when it is due, and another token before that. Decode batches of up to `graph_bs` requests run a captured graph."""

    def __init__(self, graph_bs=4, stride=1, accepted=1):
        self.graph_bs, self.stride, self.accepted = graph_bs, stride, accepted
        self.forward_pass_id = 0

    def forward(self, forward_batch, skip_attn_backend_init=None, pp_proxy_tensors=None, reinit_attn_backend=False, split_forward_count=1):
        self.forward_pass_id += 1
        return ModelRunnerOutput(None, forward_batch.forward_mode.is_decode() and len(forward_batch.reqs) <= self.graph_bs)

    def sample(self, logits_output, forward_batch):
        if self.stride > 1 and forward_batch.forward_mode.is_decode():
            return Tensor([TOKEN] * (self.stride * len(forward_batch.reqs)))
        return Tensor([self._token(req) for req in forward_batch.reqs])

    def _token(self, req):
        params = req.sampling_params.custom_params
        return STOP_TOKEN if params and params["stop_at"] == 1 + req.decode_batch_idx else TOKEN
