"""What the interpreter itself tells of calls (`sys.monitoring`, Python 3.12 on). Functions of the program stay what they are, and those that nothing is asked of cost nothing after their first call.

It needs no module of Python, as `_likeness` says.
"""

import sys

from .. import _sa_profile
from .warnings import warn_once

# The numbers that `sys.monitoring` gives nobody a name for.
TOOLS = (4, 3)
COROUTINE = 0x80
_tool = None


def listen():
    """Has the ends of calls told; whether that is possible here."""
    global _tool
    if _tool is None and hasattr(sys, "monitoring"):
        _tool = _take_tool(sys.monitoring)
    return _tool is not None


def _take_tool(monitoring):
    free = [tool for tool in TOOLS if monitoring.get_tool(tool) is None]
    if not free:
        return None
    tool, events = free[0], monitoring.events
    monitoring.use_tool_id(tool, "sa_profile")
    monitoring.register_callback(tool, events.PY_START, _sa_profile.function_started)
    monitoring.register_callback(tool, events.PY_RETURN, _sa_profile.function_returned)
    monitoring.register_callback(tool, events.PY_UNWIND, _sa_profile.function_unwound)
    monitoring.set_events(tool, events.PY_UNWIND)  # there is none for a single function
    return tool


def judge_by(judge):
    """Asks `judge(code, module)` at the first call of each function, by the name of its module; it gives the name of the function's spans, or nothing."""

    def watched(code, module):
        try:
            name = judge(code, module)
            if name:
                _sa_profile.track_code(code, _sa_profile.span(name, cat="track", level="e2e"))
                tell_end(code)
            return bool(name)
        except Exception as error:
            warn_once(f"{code.co_name} is not tracked: {type(error).__name__}: {error}")
            return False

    monitoring = sys.monitoring
    _sa_profile.set_judge(watched, monitoring.DISABLE)
    monitoring.set_events(_tool, monitoring.get_events(_tool) | monitoring.events.PY_START)


def tell_end(code):
    """Has the ends of this code's calls told."""
    events = sys.monitoring.events
    # Without the second one, which nobody is called for, Python 3.13 closes a coroutine that waits and tells nothing.
    wanted = events.PY_RETURN | events.PY_RESUME if code.co_flags & COROUTINE else events.PY_RETURN
    sys.monitoring.set_local_events(_tool, code, wanted)
