"""A small stand-in with the shape of vLLM's classes, for tests of the plugin: what calls what, with which arguments."""

import os


def without(cls):
    """Takes from a class what FAKE_VLLM_WITHOUT names, as another version would lack it."""
    for name in os.environ.get("FAKE_VLLM_WITHOUT", "").split(","):
        owner, _, attribute = name.partition(".")
        if owner == cls.__name__ and attribute in cls.__dict__:
            delattr(cls, attribute)
    return cls
