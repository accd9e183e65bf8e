"""The title of a process, as the package of this name keeps it."""

_title = "python"


def setproctitle(title):
    global _title
    _title = title


def getproctitle():
    return _title
