"""What goes between the API server and the engine: made into bytes and out of them, on both sides."""

from .. import span
from .._hooks.chain import chain_if_there, inside


def hook(module):
    """Hooks the classes of `vllm.v1.serial_utils`: once for each request and each step."""
    for owner, functions in (("MsgpackEncoder", ("encode", "encode_into")), ("MsgpackDecoder", ("decode",))):
        found = getattr(module, owner, None)
        for function in functions:
            chain_if_there(found, function, span(f"{owner}.{function}", cat="transport"), inside)
