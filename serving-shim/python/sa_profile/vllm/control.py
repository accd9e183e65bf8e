"""vLLM's own /start_profile and /stop_profile, where the user enabled them, switch the run's recording too."""

import json
import os
import secrets
import time

from .. import directory, instant, run
from .._sa_profile import is_enabled
from .chain import chain, tell

_ours = False  # recording is on because /start_profile was called


def hook(client):
    """Hooks the class that vLLM's profile routes call."""
    chain(client, "start_profile", start_profile)
    chain(client, "stop_profile", stop_profile)


def start_profile(*_args, **_kwargs):
    """Begins recording if it was off, in all processes of the run."""

    def leave(_result, error):
        global _ours
        if error is not None:
            return
        if is_enabled():
            instant("vllm.start_profile", cat="serving")
        else:
            _ours = switch("start") or _ours

    return leave


def stop_profile(*_args, **_kwargs):
    """Ends what /start_profile began. A recording that was on before goes on."""

    def leave(_result, error):
        global _ours
        if error is not None:
            return
        instant("vllm.stop_profile", cat="serving")
        if _ours:
            _ours = not switch("stop")

    return leave


def switch(cause):
    """Stores the control that every process of the run obeys. False, and a word on stderr, if that is not possible."""
    folder, name = directory(), run()
    if folder is None or name is None:
        tell(f"recording is not configured, so /{cause}_profile does not switch it")
        return False
    order = dict(version=1, id=secrets.token_hex(8), run=name, cause=cause, from_realtime_ns=time.time_ns())
    if cause == "stop":
        order["levels"] = []
    try:
        _store(os.path.join(folder, "control"), json.dumps(order, separators=(",", ":")) + "\n")
    except OSError as error:
        tell(f"recording could not be switched: {error}")
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
