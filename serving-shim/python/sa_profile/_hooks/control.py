"""Switches recording on or off in all processes of the run, through a control file that each of them reads (FORMAT.md §6)."""

import json
import os
import secrets
import time

from .. import directory, run
from .warnings import warn_once


def switch(cause, **more):
    """Writes the control file that every process of the run reads, with further members in `more`. Returns False, after a message on stderr, if that is impossible."""
    folder, name = directory(), run()
    if folder is None or name is None:
        warn_once(f"recording is not configured, so /{cause}_profile does not switch it")
        return False
    order = dict(version=1, id=secrets.token_hex(8), run=name, cause=cause, from_realtime_ns=time.time_ns(), **more)
    if cause == "stop":
        order["levels"] = []
    try:
        _store(os.path.join(folder, "control"), json.dumps(order, separators=(",", ":")) + "\n")
    except OSError as error:
        warn_once(f"recording could not be switched: {error}")
        return False
    return True


def _store(path, text):
    """Writes a file under a temporary name and renames it, so that a reader never sees a part of it."""
    whole = f"{path}.{os.getpid()}.{secrets.token_hex(4)}"
    descriptor = os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        os.rename(whole, path)
    except OSError:
        os.unlink(whole)
        raise
