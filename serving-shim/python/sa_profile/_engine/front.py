"""The frontend's part: requests whose outputs it waits for."""

import asyncio

from .. import now_ns
from .._sa_profile import FrontRequests

__all__ = ["FrontRequests", "end_all"]


def end_all(front, request_ids, error):
    """Ends requests of a frontend for which no output and no abort will come."""
    why = "abort" if isinstance(error, asyncio.CancelledError) else "error"
    for request_id in request_ids:
        front.end(request_id, why, now_ns(), type(error).__name__)
