"""Describes what a step of vLLM computes, read from its `SchedulerOutput`. It is the same in the engine and in each worker."""

from typing import NamedTuple


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


class Speculation(NamedTuple):
    """Drafted and accepted tokens of a step. `by_position` counts the accepted tokens at each position of a draft."""

    drafted: int
    accepted: int
    by_position: list

    def args(self):
        """Returns them as args of a span or series of a counter."""
        return dict(drafted=self.drafted, accepted=self.accepted)


def speculation(drafts, model_output):
    """Returns what a step with these drafts speculated, or `None` if it speculated nothing."""
    sampled = getattr(model_output, "sampled_token_ids", None)
    indexes = getattr(model_output, "req_id_to_index", None)
    if not sampled or not indexes:
        return None
    counts = []
    for request_id, tokens in drafts.items():
        index = indexes.get(request_id)
        if index is not None and index < len(sampled) and len(sampled[index]):
            counts.append((len(tokens), min(len(sampled[index]) - 1, len(tokens))))
    drafted = sum([tokens for tokens, _ in counts])
    if not drafted:
        return None
    longest = max([tokens for tokens, _ in counts])
    by_position = [sum([accepted > position for _, accepted in counts]) for position in range(longest)]
    return Speculation(drafted, sum(by_position), by_position)
