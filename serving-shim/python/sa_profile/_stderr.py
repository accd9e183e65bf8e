"""Lines on stderr, which is the program's: nothing there may raise."""

import sys

from ._visible_text import visible

_said: set[str] = set()


def say(text: object, source: str = "sa_profile") -> None:
    """Says it. stderr may be closed: then it is None, and `print` would take stdout."""
    if sys.stderr is None:
        return
    try:
        print(f"{source}: {visible(text)}", file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        pass


def warn_once(text: str, source: str = "sa_profile") -> None:
    """Says it once in each process."""
    if text not in _said:
        _said.add(text)
        say(text, source)
