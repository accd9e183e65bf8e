"""Describes what a batch of SGLang computes, read from its `ScheduleBatch`. It is the same in every rank."""

from .._sa_profile import Step, request_ids
from .._engine.speculation import speculation as speculated

_modes: dict[int, tuple] = {}  # (name, what it computes) by the `id` of a member of SGLang's `ForwardMode`, which is slow to hash


def _mode(found):
    """Returns the name of a batch's mode, and whether it extends prompts, decodes, or computes nothing."""
    kind = "extend" if found.is_extend() else "decode" if found.is_decode() else None
    known = _modes[id(found)] = found.name.lower(), kind
    return known


def describe(batch, last, number, has_ranks):
    """Returns the step of a batch, and whether it is one that extends prompts, decodes, or computes nothing: `"extend"`, `"decode"` or `None`.

    `last` is the step before it, whose requests are usually the same. Without further ranks, the step needs no flow.
    """
    requests = batch.reqs
    count = len(requests)
    name, kind = _modes.get(id(batch.forward_mode)) or _mode(batch.forward_mode)
    ids = request_ids([one.rid for one in requests], None if last is None else last.request_ids)
    if kind == "decode":
        tokens, prefill = count, (0, 0)
    elif kind == "extend":
        decoding = len(getattr(batch, "decoding_reqs", None) or ())
        tokens = batch.extend_num_tokens or 0
        prefill = count - decoding, tokens - decoding
    else:  # an idle batch, or one of requests whose prompt another server has computed
        count, tokens, prefill = 0, 0, (0, 0)
    flow = f"{number}/{requests[0].rid}/{tokens}" if has_ranks and requests else None
    return Step(ids, count, tokens, prefill, flow, number, name), kind


def speculates(scheduler):
    """Returns true if a scheduler drafts tokens."""
    algorithm = getattr(scheduler, "spec_algorithm", None)
    return algorithm is not None and not algorithm.is_none()


def speculation(result):
    """Returns what a batch speculated, or `None` if it speculated nothing. SGLang's number of drafted tokens includes one that is sampled in any case."""
    drafted = getattr(result, "speculative_num_draft_tokens", None)
    if not drafted:
        return None
    accepted = getattr(result, "num_correct_drafts_per_req_cpu", None) or getattr(result, "accept_length_per_req_cpu", None)
    return None if accepted is None else speculated([(drafted - 1, one) for one in accepted])
