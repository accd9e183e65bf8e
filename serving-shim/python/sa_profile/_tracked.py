"""The spans of a tracked function. Imports no standard module, for the reason given in `_likeness`."""

from . import _sa_profile
from ._truncation import truncate


class Tracked:
    """Creates the spans of a tracked function."""

    def __init__(self, name, cat, level, signature=None, outputs=False, metadata=None, max_chars=256):
        self.name = name
        self.cat = cat
        self.level = level
        self.signature = signature
        self.outputs = outputs
        self.metadata = dict(metadata or {})
        self.max_chars = max_chars
        self.plain = _sa_profile.span(name, cat=cat, level=level)  # raises an error for an unknown level at the decorator

    def is_plain(self):
        """Returns true if all calls can share one span without args."""
        return self.signature is None and not self.outputs and not self.metadata

    def args(self, args, kwargs):
        """Returns the args for the span of one call."""
        if self.signature is None:
            return dict(self.metadata)
        try:
            inputs = self.signature.bind(*args, **kwargs).arguments
        except TypeError:  # the call itself will raise the same error
            inputs = {"args": args, "kwargs": kwargs}
        return {**self.metadata, "inputs": truncate(inputs, self.max_chars)}

    def output(self, value):
        """Returns a result or item as an arg."""
        return truncate(value, self.max_chars)

    def span(self, args):
        """Returns the span of one call. It reads the dict when it ends."""
        return _sa_profile.dict_span(self.name, self.cat, self.level, args, False)

    def async_span(self, args, kwargs):
        """Opens the span of one generator, on a lane of its own."""
        span = _sa_profile.async_span(self.name, cat=self.cat, level=self.level, lane=self.name)
        if span.is_recording():
            span.arg(**self.args(args, kwargs))
        return span
