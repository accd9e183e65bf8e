"""Records the lifetimes of asyncio tasks as spans on their tracks. It sets no task factory and replaces no function: `sys.monitoring` reports what the functions that create tasks return.

Imports no standard module, for the reason given in `_likeness`.
"""

from .. import _sa_profile
from . import calls
from .imports import when_imported
from .warnings import warn_once

# Functions that create tasks. The second and third also return tasks of loops that are not written in Python, such as uvloop's.
MAKERS = (
    ("asyncio.base_events", "BaseEventLoop.create_task"),
    ("asyncio.tasks", "create_task"),
    ("asyncio.tasks", "ensure_future"),
    ("asyncio.taskgroups", "TaskGroup.create_task"),
)


def watch():
    """Records the tasks that are created from now on."""
    if not calls.listen():
        return warn_once("the lives of asyncio tasks are not shown: expected Python 3.12 or later, with one of sys.monitoring's tools 3 and 4 free")
    _sa_profile.set_root_watch(_watch_root)
    for module, name in MAKERS:
        when_imported(module, _Maker(name).watch_in)


class _Maker:
    """A function that creates tasks."""

    def __init__(self, name):
        self.names = name.split(".")

    def watch_in(self, module):
        function = module
        for name in self.names:
            function = vars(function)[name]
        _sa_profile.watch_task_maker(function.__code__)
        calls.tell_end(function.__code__)


def _watch_root(code):
    _sa_profile.watch_root(code)
    calls.tell_end(code)
