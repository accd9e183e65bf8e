"""Records the lifetimes of asyncio tasks as spans on their tracks. It sets no task factory and replaces no function: `sys.monitoring` reports what the functions that create tasks return.

Imports no standard module, for the reason given in `_tracking`.
"""

from .. import _sa_profile
from . import calls
from .imports import when_imported
from .warnings import warn_once

# Functions that create tasks. The second and third also return tasks of loops that are not written in Python, such as uvloop's.
CREATORS = (
    ("asyncio.base_events", "BaseEventLoop.create_task"),
    ("asyncio.tasks", "create_task"),
    ("asyncio.tasks", "ensure_future"),
    ("asyncio.taskgroups", "TaskGroup.create_task"),
)


def watch():
    """Records the tasks that are created from now on."""
    if not calls.enable():
        return warn_once("the lives of asyncio tasks are not shown: expected Python 3.12 or later, with one of sys.monitoring's tools 3 and 4 free")
    _sa_profile.set_coroutine_watcher(_watch_coroutine)
    for module, name in CREATORS:
        when_imported(module, _TaskCreator(name).watch_in_module)


class _TaskCreator:
    """A function that creates tasks."""

    def __init__(self, name):
        self.names = name.split(".")

    def watch_in_module(self, module):
        function = module
        for name in self.names:
            function = vars(function)[name]
        _sa_profile.watch_task_creator(function.__code__)
        calls.report_end(function.__code__)


def _watch_coroutine(code):
    _sa_profile.watch_task_coroutine(code)
    calls.report_end(code)
