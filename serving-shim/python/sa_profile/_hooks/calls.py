"""Uses `sys.monitoring` (Python 3.12 or later) to observe calls. The program's functions stay unchanged, and a function that is not tracked costs nothing after its first call.

Imports no standard module, for the reason given in `_tracking`.
"""

import sys

from .. import _sa_profile
from .warnings import warn_once

# Tool ids for which `sys.monitoring` defines no name.
TOOL_IDS = (4, 3)
COROUTINE = 0x80
_tool = None


def enable():
    """Starts to observe the ends of calls. Returns true if that is possible here."""
    global _tool
    if _tool is None and hasattr(sys, "monitoring"):
        _tool = _register_tool(sys.monitoring)
    return _tool is not None


def _register_tool(monitoring):
    free = [tool for tool in TOOL_IDS if monitoring.get_tool(tool) is None]
    if not free:
        return None
    tool, events = free[0], monitoring.events
    monitoring.use_tool_id(tool, "sa_profile")
    monitoring.register_callback(tool, events.PY_START, _sa_profile.function_started)
    monitoring.register_callback(tool, events.PY_RETURN, _sa_profile.function_returned)
    monitoring.register_callback(tool, events.PY_UNWIND, _sa_profile.function_unwound)
    monitoring.set_events(tool, events.PY_UNWIND)  # this event cannot be enabled for a single function
    return tool


def track_matching(select):
    """Calls `select(code, module)` on the first call of each function, with the name of its module. It returns the name for the function's spans, or None."""

    def is_tracked(code, module):
        try:
            name = select(code, module)
            if name:
                _sa_profile.track_code(code, _sa_profile.span(name, cat="track", level="e2e"))
                report_end(code)
            return bool(name)
        except Exception as error:
            warn_once(f"{code.co_name} is not tracked: {type(error).__name__}: {error}")
            return False

    monitoring = sys.monitoring
    _sa_profile.set_code_filter(is_tracked, monitoring.DISABLE)
    monitoring.set_events(_tool, monitoring.get_events(_tool) | monitoring.events.PY_START)


def report_end(code):
    """Makes the interpreter report the ends of this code's calls."""
    events = sys.monitoring.events
    # No callback is registered for PY_RESUME. But without that event, Python 3.13 reports nothing when it closes a suspended coroutine.
    enabled = events.PY_RETURN | events.PY_RESUME if code.co_flags & COROUTINE else events.PY_RETURN
    sys.monitoring.set_local_events(_tool, code, enabled)
