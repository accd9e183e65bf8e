"""Records compilations by `torch.compile` and Triton as spans, because a step that meets a new shape may wait for one."""

from .. import now_ns, span
from .._sa_profile import is_enabled, is_pending, thread_duration
from .chain import chain_if_there, inside
from .warnings import quietly, warn_once


class Compilations:
    """Handles torch's own callbacks, which count nested compilations as one. Up to version 2.7, torch passes no arguments."""

    def __init__(self):
        self._began_ns = 0

    def began(self, *_args):
        quietly(self._begin)

    def ended(self, *args):
        quietly(self._end, *args)

    def _begin(self):
        self._began_ns = now_ns() if is_enabled() else 0

    def _end(self, *args):
        began_ns, self._began_ns = self._began_ns, 0
        if began_ns and not is_pending():  # not as the first event, because that would make this process the run's main one
            thread_duration("torch.compile", "compile", began_ns, now_ns() - began_ns, _span_args(*args))


def _span_args(args=None, *_more):
    return {} if args is None else dict(compile_id=str(args.compile_id), trigger=args.callback_trigger.name.lower())


def hook_triton(module):
    """Hooks `triton.compiler.compile`, which each kernel calls once per combination of argument types. Kernels cached on disk are loaded from there."""
    chain_if_there(module, "compile", span("triton.compile", cat="compile"), inside)


def hook(module):
    """Hooks the handler of `torch._dynamo.callback`."""
    handler = getattr(module, "callback_handler", None)
    if handler is None:
        warn_once("this torch has no torch._dynamo.callback.callback_handler: compilations are missing")
        return
    compilations = Compilations()
    handler.register_start_callback(compilations.began)
    handler.register_end_callback(compilations.ended)
