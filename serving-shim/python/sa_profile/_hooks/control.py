"""Switches recording in all processes of the run, by the file that each of them obeys (FORMAT.md §6)."""

import json
import os
import secrets
import time

from .. import directory, run
from .warnings import warn_once


def switch(cause):
    """Stores the control that every process of the run obeys. False, and a word on stderr, if that is not possible."""
    folder, name = directory(), run()
    if folder is None or name is None:
        warn_once(f"recording is not configured, so /{cause}_profile does not switch it")
        return False
    order = dict(version=1, id=secrets.token_hex(8), run=name, cause=cause, from_realtime_ns=time.time_ns())
    if cause == "stop":
        order["levels"] = []
    try:
        _store(os.path.join(folder, "control"), json.dumps(order, separators=(",", ":")) + "\n")
    except OSError as error:
        warn_once(f"recording could not be switched: {error}")
        return False
    return True


def _store(path, text):
    """Under another name first: a reader shall never see half of it."""
    whole = f"{path}.{os.getpid()}.{secrets.token_hex(4)}"
    descriptor = os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        os.rename(whole, path)
    except OSError:
        os.unlink(whole)
        raise
