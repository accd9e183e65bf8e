"""What a step of vLLM computes: facts of its `SchedulerOutput`, the same in the engine and in each worker."""

from typing import NamedTuple


def prefill(output):
    """The ids of a step's requests that prefill.

    A request prefills while it has no output yet, after a preemption, and where it computes more than one token that nobody
    speculated. All else decodes. Nothing is looked at one by one where each of them computes one token.
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
    ids.update(resumed(output))
    outputs = getattr(cached, "num_output_tokens", ())
    if 0 in outputs:
        ids.update([request_id for request_id, count in zip(cached.req_ids, outputs) if count == 0])
    return ids


def entering(output):
    """The ids of requests that begin, or begin again, to be computed with this step."""
    ids = [request.req_id for request in output.scheduled_new_reqs]
    ids.extend(resumed(output))
    return ids


def resumed(output):
    """The ids of requests that were put off and begin again. Before 0.13 there were flags beside the ids; before 0.10, one object for each request."""
    cached = output.scheduled_cached_reqs
    found = getattr(cached, "resumed_req_ids", None)
    if found is not None:
        return found
    if isinstance(cached, list):
        return [request.req_id for request in cached if request.resumed_from_preemption]
    return [request_id for request_id, again in zip(cached.req_ids, cached.resumed_from_preemption) if again]


class Speculation(NamedTuple):
    """Drafted and accepted tokens of a step. `by_position` has, for each place in a draft, how often its token was accepted."""

    drafted: int
    accepted: int
    by_position: list

    def args(self):
        """As args and as series of a counter."""
        return dict(drafted=self.drafted, accepted=self.accepted)


def speculation(drafts, model_output):
    """What a step speculated with these drafts, or `None` where nothing was."""
    sampled = getattr(model_output, "sampled_token_ids", None)
    places = getattr(model_output, "req_id_to_index", None)
    if not sampled or not places:
        return None
    counts = []
    for request_id, tokens in drafts.items():
        place = places.get(request_id)
        if place is not None and place < len(sampled) and len(sampled[place]):
            counts.append((len(tokens), min(len(sampled[place]) - 1, len(tokens))))
    drafted = sum([tokens for tokens, _ in counts])
    if not drafted:
        return None
    longest = max([tokens for tokens, _ in counts])
    by_position = [sum([accepted > place for _, accepted in counts]) for place in range(longest)]
    return Speculation(drafted, sum(by_position), by_position)
