"""The names of pypto-serving's profiler, which this package can replace. They can also be imported from the package itself.

::

    from sa_profile.compat import get_profiler, merge_profile, profile_span

    get_profiler(process_name="worker-0")
    with profile_span("step", cat="worker", args={"batch": 4}):
        ...
    merge_profile()
"""

from .env import ProfileConfig, create_profile_config, load_profile_config
from .merge import merge_fragments
from .recorder import (
    ProfileRecorder,
    configure_profiler,
    get_profiler,
    is_enabled,
    merge_profile,
    profile_duration,
    profile_instant,
    profile_span,
    start_profile,
    stop_profile,
)

__all__ = [
    "ProfileConfig",
    "ProfileRecorder",
    "configure_profiler",
    "create_profile_config",
    "get_profiler",
    "is_enabled",
    "load_profile_config",
    "merge_fragments",
    "merge_profile",
    "profile_duration",
    "profile_instant",
    "profile_span",
    "start_profile",
    "stop_profile",
]
