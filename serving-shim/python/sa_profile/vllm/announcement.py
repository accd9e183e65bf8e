"""One line in the server's log: whether it records, where, and how to begin where it does not yet."""

from .. import directory, levels, set_process_name
from ..hooks.warnings import warn_once
from .names import title

# Of several API servers, the one that speaks for all. The third is that of vLLM's supervisor of data parallel servers with a port of their own each.
FIRST = (None, "APIServer", "APIServer_0", "APIServer_DP0")


def announce():
    """Says it, once in a server; and gives the process its name, which its first request is too late for."""
    name = title()
    if name:
        set_process_name(name)
    folder = directory()
    if folder is None or name not in FIRST:
        return
    on = ", ".join(sorted(levels()))
    if on:
        warn_once(f"recording to {folder}, levels {on}")
    else:
        warn_once(f"recording to {folder} is paused: sa-profile start {folder} begins")
