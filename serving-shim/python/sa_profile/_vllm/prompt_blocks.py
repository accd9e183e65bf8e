"""The hashes of a prompt's blocks, of which the report learns what prompts have in common. Never its text, nor its tokens."""

MOST_BLOCKS = 512  # that are told of a prompt: 8 KiB of text
HASH_BYTES = 8  # of each hash


def tell(span, theirs, scheduler, ts_ns):
    """Tells those that vLLM computed for its prefix cache, which are of full blocks. Each stands for all of the prompt up to its block's end."""
    hashes = getattr(theirs, "block_hashes", None)
    block_tokens = getattr(scheduler, "hash_block_size", None) or getattr(scheduler, "block_size", None)
    prompt_tokens = getattr(theirs, "num_prompt_tokens", None)
    # Another number of hashes than of blocks: they are of blocks of another size.
    if not hashes or not block_tokens or len(hashes) != (prompt_tokens or 0) // block_tokens:
        return
    first = hashes[:MOST_BLOCKS]
    if not all(isinstance(one, bytes) and len(one) >= HASH_BYTES for one in first):
        return
    span.instant(
        "request.prompt_blocks", level="verbose", ts_ns=ts_ns, prompt_tokens=prompt_tokens, block_tokens=block_tokens, blocks=len(hashes),
        hashes=b"".join([one[:HASH_BYTES] for one in first]).hex(),
    )
