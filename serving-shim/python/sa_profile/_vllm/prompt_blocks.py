"""Records hashes of a prompt's blocks, from which the report derives what prompts have in common. The prompt's text and tokens, and the engine's own hashes, are never recorded."""

import hashlib
import os

MAX_BLOCKS = 512  # of a prompt: 8 KiB of hex text
HASH_BYTES = 8  # of each hash
KEY = os.urandom(32)  # never written, so that nobody can use a trace to check guesses of a prompt


def record(span, theirs, scheduler, ts_ns):
    """Records the hashes that vLLM computed for its prefix cache, each hashed again with this process's key. There is one per full block, and it covers the prompt up to that block's end."""
    hashes = getattr(theirs, "block_hashes", None)
    block_tokens = getattr(scheduler, "hash_block_size", None) or getattr(scheduler, "block_size", None)
    prompt_tokens = getattr(theirs, "num_prompt_tokens", None)
    # If there are more or fewer hashes than blocks, they are for blocks of another size.
    if not hashes or not block_tokens or len(hashes) != (prompt_tokens or 0) // block_tokens:
        return
    first = hashes[:MAX_BLOCKS]
    if not all(isinstance(block_hash, bytes) for block_hash in first):
        return
    span.instant(
        "request.prompt_blocks", level="verbose", ts_ns=ts_ns, prompt_tokens=prompt_tokens, block_tokens=block_tokens, blocks=len(hashes),
        hashes=b"".join([_under_key(block_hash) for block_hash in first]).hex(),
    )


def _under_key(block_hash):
    return hashlib.blake2b(block_hash, key=KEY, digest_size=HASH_BYTES).digest()
