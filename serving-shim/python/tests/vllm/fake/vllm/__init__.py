"""A small stand-in with the shape of vLLM's classes, for tests of the plugin: what calls what, with which arguments."""

__version__ = "0.99.0"
