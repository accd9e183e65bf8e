"""Records what a Python process does, for one trace of all processes of an LLM server.

Set ``SA_PROFILE_DIR`` before the program starts; afterwards ``trace-merge $SA_PROFILE_DIR`` makes ``trace.json``, for Perfetto::

    import sa_profile

    STEP = sa_profile.span("step", cat="engine")
    with STEP:
        sa_profile.instant("scheduled", requests=3)

Nothing is recorded, and no file written, unless one of ``SA_PROFILE_DIR``, ``SA_PROFILE_OUTPUT`` and ``SA_PROFILE_LEVEL`` is set.
"""

from ._sa_profile import (
    AsyncSpan,
    Launch,
    Request,
    Span,
    async_span,
    begin,
    counter,
    directory,
    dropped,
    duration,
    end,
    finish,
    flow,
    flush,
    fragment,
    instant,
    is_main,
    launch_timed,
    launch_walls,
    levels,
    now_ns,
    request,
    run,
    set_process_name,
    set_thread_name,
    span,
    trace,
)
from .env import ProfileConfig, create_profile_config, load_profile_config
from .merge import merge_fragments
from .native_files import include_path, library_path, preload_path
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
from .track import track

from . import forks as _forks

_forks.watch()
