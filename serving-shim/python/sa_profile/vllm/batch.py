"""What a step of vLLM computes: facts of its `SchedulerOutput`, the same in the engine and in each worker."""


def composition(output):
    """Requests and tokens of a step, by kind, as args of a span.

    A request prefills while it has no output yet, after a preemption, and where it computes more than one token that nobody
    speculated. All else decodes.
    """
    drafts = getattr(output, "scheduled_spec_decode_tokens", None) or {}
    cached = output.scheduled_cached_reqs
    prefilling = _prefilling(output, cached)
    facts = dict(prefill_requests=0, prefill_tokens=0, decode_requests=0, decode_tokens=0)
    for request_id, tokens in output.num_scheduled_tokens.items():
        decodes = request_id not in prefilling and tokens <= 1 + len(drafts.get(request_id, ()))
        kind = "decode" if decodes else "prefill"
        facts[kind + "_requests"] += 1
        facts[kind + "_tokens"] += tokens
    return facts


def _prefilling(output, cached):
    ids = {request.req_id for request in output.scheduled_new_reqs}
    ids.update(getattr(cached, "resumed_req_ids", ()))
    outputs = getattr(cached, "num_output_tokens", ())
    ids.update(request_id for request_id, count in zip(cached.req_ids, outputs) if count == 0)
    return ids


def request_ids(output):
    """The internal ids of the step's requests, in its order."""
    return list(output.num_scheduled_tokens)


def entering(output):
    """The ids of requests that begin, or begin again, to be computed with this step."""
    ids = [request.req_id for request in output.scheduled_new_reqs]
    ids.extend(getattr(output.scheduled_cached_reqs, "resumed_req_ids", ()))
    return ids


def key(output):
    """A name for the step that engine and workers find on their own, or `None` for an empty one.

    It is sent nowhere: both have the same scheduler output, in which a request does not come twice as far with as many tokens.
    """
    if not output.total_num_scheduled_tokens:
        return None
    if output.scheduled_new_reqs:
        first = output.scheduled_new_reqs[0]
        place = (first.req_id, first.num_computed_tokens, "new")
    else:
        cached = output.scheduled_cached_reqs
        outputs = getattr(cached, "num_output_tokens", None) or [0]
        place = (cached.req_ids[0], cached.num_computed_tokens[0], outputs[0])
    return "{}/{}/{}/{}".format(*place, output.total_num_scheduled_tokens)


def speculation(output, model_output):
    """Drafted and accepted tokens of a step, or `None` where nothing was speculated."""
    drafts = getattr(output, "scheduled_spec_decode_tokens", None)
    sampled = getattr(model_output, "sampled_token_ids", None)
    places = getattr(model_output, "req_id_to_index", None)
    if not drafts or not sampled or not places:
        return None
    drafted = accepted = 0
    for request_id, tokens in drafts.items():
        place = places.get(request_id)
        if place is not None and place < len(sampled) and len(sampled[place]):
            drafted += len(tokens)
            accepted += min(len(sampled[place]) - 1, len(tokens))
    return dict(drafted=drafted, accepted=accepted) if drafted else None
