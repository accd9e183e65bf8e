"""Stand-in for the package `sgl_kernel`, whose wheels need CUDA. SGLang imports names from it, but calls none of them on a CPU without AMX.

Every name can be imported. A call raises an exception that contains the name.
"""

import sys

sys.modules[f"{__name__}.kvcacheio"] = sys.modules[__name__]  # the only submodule that a server imports


class Missing:
    """A kernel that cannot be called."""

    def __init__(self, name):
        self.__name__ = self.__qualname__ = name

    def __call__(self, *_args, **_kwargs):
        raise NotImplementedError(f"sgl_kernel.{self.__name__} was called, but tests/sglang/sgl_kernel.py has no kernels")


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Missing(name)
