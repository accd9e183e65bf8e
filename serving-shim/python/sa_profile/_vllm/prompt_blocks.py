"""The hashes of a prompt's blocks, from which the report learns what prompts have in common. Never its text, its tokens, nor the engine's own hashes."""

import hashlib
import os

MOST_BLOCKS = 512  # of a prompt: 8 KiB of text
HASH_BYTES = 8  # of each hash
KEY = os.urandom(32)  # never written: who reads a trace can then try no guess of a prompt


def record(span, theirs, scheduler, ts_ns):
    """Records those that vLLM computed for its prefix cache, each under this process's key. They are of full blocks, and each stands for all of the prompt up to its block's end."""
    hashes = getattr(theirs, "block_hashes", None)
    block_tokens = getattr(scheduler, "hash_block_size", None) or getattr(scheduler, "block_size", None)
    prompt_tokens = getattr(theirs, "num_prompt_tokens", None)
    # Another number of hashes than of blocks: they are of blocks of another size.
    if not hashes or not block_tokens or len(hashes) != (prompt_tokens or 0) // block_tokens:
        return
    first = hashes[:MOST_BLOCKS]
    if not all(isinstance(one, bytes) for one in first):
        return
    span.instant(
        "request.prompt_blocks", level="verbose", ts_ns=ts_ns, prompt_tokens=prompt_tokens, block_tokens=block_tokens, blocks=len(hashes),
        hashes=b"".join([_under_key(one) for one in first]).hex(),
    )


def _under_key(one):
    return hashlib.blake2b(one, key=KEY, digest_size=HASH_BYTES).digest()
