from sglang.srt.managers.utils import GenerationBatchResult
from sglang.srt.model_executor.model_runner import ModelRunner, Tensor


class BaseTpWorker:
    def on_verify_complete_cpu(self, num_correct_drafts_per_req, batch_size=0):
        pass


class TpModelWorker(BaseTpWorker):
    """Runs the model and samples. With speculation, each request of a decode batch gets `accepted` of its drafts and one more token."""

    def __init__(self, server_args, gpu_id=0):
        self.model_runner = ModelRunner(stride=server_args.speculative_num_draft_tokens or 1)
        self.server_args = server_args

    def forward_batch_generation(
        self, batch, forward_batch=None, pp_proxy_tensors=None, is_verify=False, skip_attn_backend_init=None, *,
        capture_hidden_mode=None, return_kv_loc_plan=False,
    ):  # fmt: skip
        runner = self.model_runner
        output = runner.forward(batch, pp_proxy_tensors=pp_proxy_tensors)
        result = GenerationBatchResult(can_run_cuda_graph=output.can_run_graph)
        if batch.has_grammar and batch.enable_overlap and runner.stride == 1:

            def sample_batch_func():
                result.next_token_ids = runner.sample(None, batch)
                return result

            result.delay_sample_func = sample_batch_func
            return result
        result.next_token_ids = runner.sample(output.logits_output, batch)
        if runner.stride > 1 and batch.forward_mode.is_decode():
            result.accept_lens = Tensor([1 + runner.accepted] * len(batch.reqs))
            result.speculative_num_draft_tokens = runner.stride
        return result
