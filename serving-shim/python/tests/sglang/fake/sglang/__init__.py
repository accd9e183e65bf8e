"""A small stand-in for SGLang, for tests of the plugin. It has the shape of SGLang's classes: the same calls with the same arguments.

`signatures.py` compares the shapes with the signatures that were read in SGLang's wheels. Batches contain plain lists and numbers instead of tensors.
"""

from sglang.version import __version__

__all__ = ["__version__"]
