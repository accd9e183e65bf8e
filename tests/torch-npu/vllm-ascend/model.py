"""The configuration of a model of two layers, and a tokenizer of numbers. Its weights are drawn by vLLM."""

import json
from pathlib import Path

WORDS = 1000
CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": WORDS,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "eos_token_id": 0,
    "bos_token_id": 0,
    "hidden_act": "silu",
    "attention_bias": False,
}
TOKENIZER = {
    "version": "1.0",
    "model": {"type": "WordLevel", "vocab": {str(word): word for word in range(WORDS)}, "unk_token": "0"},
    "pre_tokenizer": {"type": "Whitespace"},
    **dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder")),
    "added_tokens": [],
}


def write(folder: Path) -> Path:
    folder.mkdir(parents=True)
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "0"}
    for name, content in (("config", CONFIG), ("tokenizer", TOKENIZER), ("tokenizer_config", settings)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder
