"""A small stand-in for vLLM, for tests of the plugin. It has the shape of vLLM's classes: the same calls with the same arguments."""

__version__ = "0.99.0"
