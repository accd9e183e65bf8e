"""What child processes must know of the run, what the child of a fork does first, and a child of multiprocessing last."""

import os
import sys

from . import _sa_profile

# What this process has told its children of the run that its first event will begin.
announced: dict[str, str] = {}


def _in_child():
    _sa_profile.after_fork_in_child()
    # multiprocessing ends its forked children by os._exit, which runs no exit handler: what is in the ring then is safe, but only the merge sees it.
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.register_after_fork(_in_child, lambda _: util.Finalize(None, _sa_profile.finish, exitpriority=-1000))


def watch():
    """Has child processes belong to this one's run, whoever records first, and forked ones take care of themselves."""
    global announced
    announced = _sa_profile.announce()
    os.environ.update(announced)
    os.register_at_fork(after_in_child=_in_child)
