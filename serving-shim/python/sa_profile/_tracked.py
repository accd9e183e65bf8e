"""A function that has spans, but for how it is wrapped. It needs no module of Python, as `likeness` says."""

from . import _sa_profile
from ._truncation import truncate


class Tracked:
    """What the spans of a tracked function carry."""

    def __init__(self, name, cat, level, signature=None, outputs=False, metadata=None, max_chars=256):
        self.name = name
        self.cat = cat
        self.level = level
        self.signature = signature
        self.outputs = outputs
        self.metadata = dict(metadata or {})
        self.max_chars = max_chars
        self.plain = _sa_profile.span(name, cat=cat, level=level)  # refuses a bad level where it is written

    def is_plain(self):
        """Whether all calls have the same span."""
        return self.signature is None and not self.outputs and not self.metadata

    def args(self, args, kwargs):
        """The args of the span of one call."""
        if self.signature is None:
            return dict(self.metadata)
        try:
            inputs = self.signature.bind(*args, **kwargs).arguments
        except TypeError:  # the call itself will say so
            inputs = {"args": args, "kwargs": kwargs}
        return {**self.metadata, "inputs": truncate(inputs, self.max_chars)}

    def output(self, value):
        """A result or item as an arg."""
        return truncate(value, self.max_chars)

    def span(self, args):
        """The span of one call; the dict is read when it ends."""
        return _sa_profile.dict_span(self.name, self.cat, self.level, args, False)

    def async_span(self, args, kwargs):
        """The span of one generator, begun, on a lane of its own."""
        span = _sa_profile.async_span(self.name, cat=self.cat, level=self.level, lane=self.name)
        if span.is_recording():
            span.arg(**self.args(args, kwargs))
        return span
