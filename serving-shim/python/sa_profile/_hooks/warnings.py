"""What hooks say on stderr: each thing once in a process, in the name of the engine whose functions they hook. Also what fails in them."""

from .. import _stderr

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
    _stderr.warn_once(text, "sa_profile" if _engine is None else f"sa_profile: {_engine} plugin")


def quietly(function, *args, **kwargs):
    """Calls a function of ours; what it raises is reported, not raised. SystemExit and KeyboardInterrupt are the host's."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return failed(function, error)


def failed(function, error):
    """Reports that a function of ours, or one of this name, has raised."""
    name = function if isinstance(function, str) else getattr(function, "__qualname__", repr(function))
    warn_once(f"{name} failed, its events are missing: {type(error).__name__}: {error}")
