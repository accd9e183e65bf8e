"""A small stand-in for the package of this name, which SGLang requires. It remembers the title."""

_title = "python"


def setproctitle(title):
    global _title
    _title = title


def getproctitle():
    return _title
