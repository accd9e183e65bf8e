"""Messages between the API server and the engine: encoded and decoded, on both sides. Recorded at level `verbose` only."""

from .. import span
from .._hooks.chain import chain_in_detail, inside


def hook(module):
    """Hooks the classes of `vllm.v1.serial_utils`: once for each request and each step."""
    for owner, functions in (("MsgpackEncoder", ("encode", "encode_into")), ("MsgpackDecoder", ("decode",))):
        found = getattr(module, owner, None)
        for function in functions:
            chain_in_detail(found, function, span(f"{owner}.{function}", cat="transport", level="verbose"), inside)
