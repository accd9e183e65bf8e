"""Describes what a step of vLLM computes, read from its `SchedulerOutput`. It is the same in the engine and in each worker."""

from .._sa_profile import Step, request_ids
from .._engine.speculation import speculation as speculated


def describe(output, last=None, number=None):
    """Returns the step of a scheduler output. `last` is the step before it, if this process has it: a step usually has the same requests again."""
    counts = output.num_scheduled_tokens
    tokens = output.total_num_scheduled_tokens
    new = output.scheduled_new_reqs
    cached = output.scheduled_cached_reqs
    ids = request_ids(counts, None if last is None else last.request_ids)
    prefill = 0, 0
    # A request that is in each step keeps its outputs: if they are discarded, it returns as a new request.
    if (
        new or tokens != len(counts) or getattr(cached, "resumed_req_ids", True)
        or not (last is not None and ids is last.request_ids and last.decodes_only or _have_outputs(cached))
    ):
        found = prefill_ids(output)
        prefill = len(found), sum([counts[one] for one in found])
    return Step(ids, len(counts), tokens, prefill, _flow(new, cached, tokens) if tokens else None, number)


def _have_outputs(cached):
    """Returns true if each continuing request is known to have an output token."""
    outputs = getattr(cached, "num_output_tokens", None)
    return outputs is not None and 0 not in outputs


def _flow(new, cached, tokens):
    """Returns a text for the step's flow that is the same in the engine and in its workers: no request occurs twice with the same progress and the same number of tokens."""
    if new:
        return f"{new[0].req_id}/{new[0].num_computed_tokens}/new/{tokens}"
    if isinstance(cached, list):  # before 0.10: one object per request
        return f"{cached[0].req_id}/{cached[0].num_computed_tokens}/0/{tokens}"
    outputs = getattr(cached, "num_output_tokens", None) or (0,)
    return f"{cached.req_ids[0]}/{cached.num_computed_tokens[0]}/{outputs[0]}/{tokens}"


def prefill_ids(output):
    """Returns the ids of a step's requests that prefill.

    A request prefills until it has an output, after a preemption, and if it computes more tokens than one plus its draft. All others decode.
    If each request computes one token, requests are not checked one by one.
    """
    counts = output.num_scheduled_tokens
    prefilling = _prefilling(output, output.scheduled_cached_reqs)
    if not prefilling and output.total_num_scheduled_tokens == len(counts):
        return ()
    drafts = getattr(output, "scheduled_spec_decode_tokens", None)
    if not drafts:
        return [one for one, tokens in counts.items() if tokens > 1 or one in prefilling]
    drafted = {one: 1 + len(tokens) for one, tokens in drafts.items()}
    return [one for one, tokens in counts.items() if tokens > drafted.get(one, 1) or one in prefilling]


def _prefilling(output, cached):
    ids = {request.req_id for request in output.scheduled_new_reqs}
    ids.update(resumed_ids(output))
    outputs = getattr(cached, "num_output_tokens", ())
    if 0 in outputs:
        ids.update([request_id for request_id, count in zip(cached.req_ids, outputs) if count == 0])
    return ids


def new_or_resumed_ids(output):
    """Returns the ids of requests that start or resume with this step."""
    ids = [request.req_id for request in output.scheduled_new_reqs]
    ids.extend(resumed_ids(output))
    return ids


def resumed_ids(output):
    """Returns the ids of preempted requests that resume. Before 0.13 there were flags next to the ids, and before 0.10 one object per request."""
    cached = output.scheduled_cached_reqs
    found = getattr(cached, "resumed_req_ids", None)
    if found is not None:
        return found
    if isinstance(cached, list):
        return [request.req_id for request in cached if request.resumed_from_preemption]
    return [request_id for request_id, again in zip(cached.req_ids, cached.resumed_from_preemption) if again]


def speculation(drafts, model_output):
    """Returns what a step with these drafts speculated, or `None` if it speculated nothing."""
    sampled = getattr(model_output, "sampled_token_ids", None)
    indexes = getattr(model_output, "req_id_to_index", None)
    if not sampled or not indexes:
        return None
    pairs = []
    for request_id, tokens in drafts.items():
        index = indexes.get(request_id)
        if index is not None and index < len(sampled) and len(sampled[index]):
            pairs.append((len(tokens), min(len(sampled[index]) - 1, len(tokens))))
    return speculated(pairs)
