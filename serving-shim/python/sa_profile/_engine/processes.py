"""The start of an engine's process: its recorder, its name, and the line in the server's log that announces the recording."""

from .. import directory, levels, set_process_name
from .._sa_profile import attach
from .._hooks.warnings import warn_once


def begin(name):
    """Starts the recorder even if it is paused, so that it can be switched on, and names the process. `None` leaves its name."""
    attach()
    if name:
        set_process_name(name)


def announce():
    """Writes one line to the server's log: whether and where it records, and how to start a paused recording."""
    folder = directory()
    if folder is None:
        return
    on = ", ".join(sorted(levels()))
    if on:
        warn_once(f"recording to {folder}, levels {on}")
    else:
        warn_once(f"recording to {folder} is paused; to start it: sa-profile start {folder}")
