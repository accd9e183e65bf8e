"""What child processes must know of the run, and what the child of a fork does first."""

import os

from . import _sa_profile

# What this process has told its children of the run that its first event will begin.
announced: dict[str, str] = {}


def watch():
    """Has child processes belong to this one's run, whoever records first, and forked ones take care of themselves."""
    global announced
    announced = _sa_profile.announce()
    os.environ.update(announced)
    os.register_at_fork(after_in_child=_sa_profile.after_fork_in_child)
