"""Reports what hooks have to say on stderr, each message once per process and under the name of their engine. Also reports failures of hooks."""

from .. import _stderr

_engine = None


def name_engine(name):
    """Sets the engine of this process, by the name that its users know."""
    global _engine
    _engine = name


def engine():
    """Returns the name of the engine, for a message."""
    return _engine or "engine"


def warn_once(text):
    """Writes a message to stderr, once per process. Never raises, because stderr may be closed."""
    _stderr.warn_once(text, "sa_profile" if _engine is None else f"sa_profile: {_engine} plugin")


def quietly(function, *args, **kwargs):
    """Calls one of our functions, and reports its exceptions instead of raising them. SystemExit and KeyboardInterrupt are passed on to the host."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return failed(function, error)


def failed(function, error):
    """Reports that one of our functions, given as such or by name, has raised an exception."""
    name = function if isinstance(function, str) else getattr(function, "__qualname__", repr(function))
    warn_once(f"{name} failed, its events are missing: {type(error).__name__}: {error}")
