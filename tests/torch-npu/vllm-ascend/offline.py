"""Two requests of a model with random weights: `offline.py MODEL EAGER`. The simulated kernels compute nothing, so the answers are the same with and without recording."""

import sys

from vllm import LLM, SamplingParams

if __name__ == "__main__":
    model, eager = sys.argv[1:]
    sizes = {"max_model_len": 256, "max_num_seqs": 4, "max_num_batched_tokens": 256, "num_gpu_blocks_override": 64}
    engine = LLM(model, load_format="dummy", enforce_eager=eager == "eager", disable_log_stats=False, **sizes)
    prompts = [{"prompt_token_ids": [5, 6, 7, 8]}, {"prompt_token_ids": [1, 2, 3]}]
    for answer in engine.generate(prompts, SamplingParams(max_tokens=6, temperature=0, ignore_eos=True, detokenize=False), use_tqdm=False):
        print("answer", answer.request_id, *answer.outputs[0].token_ids)
