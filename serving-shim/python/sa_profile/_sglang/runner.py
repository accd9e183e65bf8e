"""The model runner of each rank: forward passes and sampling."""

from .. import span
from .._hooks.chain import chain_if_there, inside


def hook(module):
    """Hooks the class of `sglang.srt.model_executor.model_runner`."""
    runner = getattr(module, "ModelRunner", None)
    for name in ("forward", "sample"):
        chain_if_there(runner, name, span(f"ModelRunner.{name}", cat="worker", level="kernel"), inside)
