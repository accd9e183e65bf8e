from dataclasses import dataclass
from typing import Any, Callable


@dataclass
class GenerationBatchResult:
    logits_output: Any = None
    pp_hidden_states_proxy_tensors: Any = None
    next_token_ids: Any = None
    num_correct_drafts: int = 0
    num_correct_drafts_per_req_cpu: list | None = None
    can_run_cuda_graph: bool = False
    copy_done: Any = None
    delay_sample_func: Callable | None = None
    speculative_num_draft_tokens: int | None = None
    speculative_output_stride: int | None = None
    num_non_draft_tokens_per_req: int = 1
    accept_lens: Any = None

    def get_num_generated_tokens(self, batch_size):
        return self.num_correct_drafts + batch_size * self.num_non_draft_tokens_per_req


def is_health_check_generate_req(recv_req):
    rid = getattr(recv_req, "rid", None)
    return rid is not None and rid.startswith("HEALTH_CHECK")
