"""Calls that the extension can do nothing with: the first of each kind is said, and the program goes on."""

from . import _sa_profile
from ._stderr import warn_once


def no_number(series: str, found: str) -> None:
    """A series of a counter is not a finite number. The extension calls it once: a call in a loop has a thousand names."""
    warn_once(f"counter(): {series}: expected a finite number, found {found}: it is left out")


def end_without_begin() -> None:
    """Nothing was begun that ``end`` could end."""
    warn_once("end() without a begin() in this task or thread: nothing was ended")


def watch() -> None:
    """Has the extension call these functions."""
    _sa_profile.set_misuse(no_number, end_without_begin)
