"""What hooks say on stderr: each thing once in a process, in the name of the engine whose functions they hook."""

from .. import stderr

_engine = None


def name_engine(name):
    """Says which engine this process runs, by the name that its users know."""
    global _engine
    _engine = name


def engine():
    """The name of the engine, for a message."""
    return _engine or "engine"


def warn_once(text):
    """Says it on stderr, once in each process. Never raises: stderr may be closed."""
    stderr.warn_once(text, "sa_profile" if _engine is None else f"sa_profile: {_engine} plugin")
