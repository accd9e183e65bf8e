"""The frontend's part: requests whose outputs it waits for."""

import asyncio
import weakref

from .. import async_span, now_ns
from .._sa_profile import FrontRequests
from .._hooks.warnings import quietly

__all__ = ["FrontRequests", "end_all", "watch_generator"]

_waits: dict[weakref.ref, object] = {}  # spans of generators that are alive


def watch_generator(generator, name, **args):
    """Records a span at level `verbose` from now until an async generator is freed because nothing waits for it any more. Its items, one per token, pass through no code of ours."""
    reference = weakref.ref(generator, _freed)
    _waits[reference] = async_span(name, cat="serving", level="verbose", **args)


def _freed(generator):
    opened = _waits.pop(generator, None)
    if opened is not None:
        quietly(opened.end)


def end_all(front, request_ids, error):
    """Ends requests of a frontend for which no output and no abort will come."""
    why = "abort" if isinstance(error, asyncio.CancelledError) else "error"
    for request_id in request_ids:
        front.end(request_id, why, now_ns(), type(error).__name__)
