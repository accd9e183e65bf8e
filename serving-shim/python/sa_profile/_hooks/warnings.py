"""Reports what hooks have to say on stderr, each message once per process and under the name of their engine. Also reports failures of hooks."""

from .. import _stderr

# Maximum length of an exception's text.
MAX_CHARS = 200
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
    warn_once(f"{name} failed, its events are missing: {described(error)}")


def described(error):
    """Returns the type and the text of an exception, which may belong to the host: its text may be a whole prompt, or raise another exception."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:
        return name
    return f"{name}: {text[:MAX_CHARS]}"
