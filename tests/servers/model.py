"""Writes the configuration of a small model, and a tokeniser of bytes and of the syllables of made-up words. The engine generates random weights.

    python model.py FOLDER
"""

import itertools
import json
import sys
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

END = "<end>"
TOKENS = 1000
CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "vocab_size": TOKENS,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "hidden_act": "silu",
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "torch_dtype": "bfloat16",
}
TEMPLATE = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}assistant:"


def tokenizer():
    """Returns a tokeniser on bytes, as large models have, so that any text can be read and any token written."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=TOKENS, special_tokens=[END], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    syllables = ["".join(pair) for pair in itertools.product("bdfgklmnprst", "aeiou")]
    made.train_from_iterator((f" {a}{b}" for a, b in itertools.product(syllables, repeat=2)), trainer)
    return made


def main(folder):
    """Writes the files that an engine reads from a model's folder, except for the weights."""
    folder.mkdir(parents=True, exist_ok=True)
    made = tokenizer()
    made.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "chat_template": TEMPLATE}
    for name, content in (("config", CONFIG), ("tokenizer_config", settings)):
        (folder / f"{name}.json").write_text(json.dumps(content, indent=2))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
