"""Encoding and decoding of the messages between the API server and the engine. Recorded only at level `verbose`."""

from .. import span
from .._hooks.chain import chain_in_detail, inside


def hook(module):
    """Hooks the classes of `vllm.v1.serial_utils`, which are called once for each request and each step."""
    for owner, functions in (("MsgpackEncoder", ("encode", "encode_into")), ("MsgpackDecoder", ("decode",))):
        found = getattr(module, owner, None)
        for function in functions:
            chain_in_detail(found, function, span(f"{owner}.{function}", cat="transport", level="verbose"), inside)
