"""What hooks say on stderr: each thing once in a process, in the name of the engine whose functions they hook."""

import sys

from ..visible_text import visible

_engine = None
_said = set()


def name_engine(name):
    """Says which engine this process runs, by the name that its users know."""
    global _engine
    _engine = name


def engine():
    """The name of the engine, for a message."""
    return _engine or "engine"


def warn_once(text):
    """Says it on stderr, once in each process. Never raises: stderr may be closed."""
    if text in _said:
        return
    _said.add(text)
    source = "sa_profile" if _engine is None else f"sa_profile: {_engine} plugin"
    try:
        print(f"{source}: {visible(text)}", file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        pass
