"""Creates the spans of a tracked function. Inputs and outputs are truncated, because a program's values may be of any size."""

from .. import _sa_profile

_MAX_ITEMS = 16
_MAX_DEPTH = 4
_MAX_KEY_CHARS = 64


class FunctionSpans:
    """Creates the spans of a tracked function."""

    def __init__(self, name, cat, level, signature=None, outputs=False, metadata=None, max_chars=256):
        self.name = name
        self.cat = cat
        self.level = level
        self.signature = signature
        self.has_result_args = outputs
        self.metadata = dict(metadata or {})
        self.max_chars = max_chars
        self.shared_span = _sa_profile.span(name, cat=cat, level=level)  # raises an error for an unknown level at the decorator

    def are_shared(self):
        """Returns true if all calls can share one span without args."""
        return self.signature is None and not self.has_result_args and not self.metadata

    def args(self, args, kwargs):
        """Returns the args for the span of one call."""
        if self.signature is None:
            return dict(self.metadata)
        try:
            inputs = self.signature.bind(*args, **kwargs).arguments
        except TypeError:  # the call itself will raise the same error
            inputs = {"args": args, "kwargs": kwargs}
        return {**self.metadata, "inputs": truncate(inputs, self.max_chars)}

    def result_args(self, result):
        """Returns the args that a call's span gets from the result, if `has_result_args` is true."""
        return {"output": truncate(result, self.max_chars)}

    def item_args(self, item):
        """Returns the args for the instant of an item that a generator has yielded."""
        return {"item": truncate(item, self.max_chars)} if self.has_result_args else {}

    def last_item_args(self, item):
        """Returns the args that a generator's span gets from its last item, if `has_result_args` is true."""
        return {}

    def span(self, args):
        """Returns the span of one call. It reads the dict when it ends."""
        return _sa_profile.dict_span(self.name, self.cat, self.level, args, False)

    def async_span(self, args, kwargs):
        """Opens the span of one generator, on a lane of its own."""
        span = _sa_profile.async_span(self.name, cat=self.cat, level=self.level, lane=self.name)
        if span.is_recording():
            span.arg(**self.args(args, kwargs))
        return span


def truncate(value, max_chars, depth=0):
    """Returns the value with texts cut to ``max_chars`` characters, and lists and dicts to 16 items. Other objects are returned unchanged, and recorded as the name of their type."""
    if isinstance(value, str):
        return value if len(value) <= max_chars else f"{value[:max_chars]}…[+{len(value) - max_chars}]"
    if depth >= _MAX_DEPTH:
        return value if isinstance(value, (int, float, type(None))) else "…"
    if isinstance(value, (list, tuple)):
        items = [truncate(item, max_chars, depth + 1) for item in value[:_MAX_ITEMS]]
        return items if len(value) <= _MAX_ITEMS else [*items, f"…[+{len(value) - _MAX_ITEMS}]"]
    if isinstance(value, dict):
        return _truncate_dict(value, max_chars, depth)
    return value


def _truncate_dict(value, max_chars, depth):
    items = {}
    for key, item in list(value.items()):  # a copy, because another thread may change the dict meanwhile
        if len(items) == _MAX_ITEMS:
            items["…"] = f"+{len(value) - _MAX_ITEMS}"
            break
        items[_key(key)] = truncate(item, max_chars, depth + 1)
    return items


def _key(key):
    """Returns a key as text. A key of another type might be unhashable after truncation."""
    if isinstance(key, str):
        return key[:_MAX_KEY_CHARS]
    return str(key) if isinstance(key, (int, float, type(None))) else type(key).__name__
