"""What a client asked for beside its prompt, as far as it matters to how its request is served: args of its span."""

STRUCTURED = ("structured_outputs", "guided_decoding")  # of today, and of older versions


def asked(new, parent=None):
    """Of vLLM's own request. Where a client wants several answers each of them is a request, and `parent` knows how many."""
    params = getattr(new, "sampling_params", None)
    known = dict(max_tokens=getattr(params, "max_tokens", None))
    samples = getattr(getattr(parent, "sampling_params", None), "n", 1)
    if samples > 1:
        known["n"] = samples
    if any(getattr(params, name, None) is not None for name in STRUCTURED):
        known["structured"] = True
    if getattr(new, "priority", 0):
        known["priority"] = new.priority
    adapter = getattr(getattr(new, "lora_request", None), "lora_name", None)
    if adapter is not None:
        known["lora"] = adapter
    return {name: value for name, value in known.items() if value is not None}
