"""Ranks of a scheduler's process. Every tensor parallel rank runs the whole scheduler, so requests are recorded only by the one that receives them."""

import sys


def rank(scheduler, name):
    """Returns one of the ranks, such as `tp_rank`, or 0 if it is unknown. SGLang kept them in the scheduler, then in its `ps`, and since 0.5.23 in a context."""
    for owner in (scheduler, getattr(scheduler, "ps", None), _context()):
        found = getattr(owner, name, None)
        if isinstance(found, int):
            return found
    return 0


def _context():
    module = sys.modules.get("sglang.srt.runtime_context")
    try:
        return module.get_parallel()
    except Exception:  # there is no such module, or no context yet
        return None


def receives_requests(scheduler):
    """Returns true if this scheduler receives requests from the tokenizer manager and sends outputs, and does not only repeat what another rank does."""
    return not any(rank(scheduler, name) for name in ("pp_rank", "attn_tp_rank", "attn_cp_rank"))


def is_first(scheduler):
    """Returns true in one process of the whole server."""
    return receives_requests(scheduler) and not rank(scheduler, "dp_rank") and not rank(scheduler, "tp_rank")
