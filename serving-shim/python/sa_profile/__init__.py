"""Records what a Python process does. The recordings of all processes of an LLM server merge into one trace.

Set ``SA_PROFILE_DIR`` before the program starts. Afterwards ``trace-merge $SA_PROFILE_DIR`` writes ``trace.json``, for Perfetto::

    import sa_profile

    STEP = sa_profile.span("step", cat="engine")
    with STEP:
        sa_profile.instant("scheduled", requests=3)

A notebook or a test can record without a variable::

    with sa_profile.recording("trace.json"):
        run()

Nothing is recorded, and no file written, unless one of ``SA_PROFILE_DIR``, ``SA_PROFILE_OUTPUT`` and ``SA_PROFILE_LEVEL`` is set, or the program calls :func:`start` or
:class:`recording`. Each event has a name, a category and a level. A trace can be filtered by the category, ``cat``. The level is ``"e2e"``, ``"kernel"`` or ``"verbose"``, and
``SA_PROFILE_LEVEL`` lists the levels to record. All other keywords of a call become the event's args. Times are ns of ``CLOCK_MONOTONIC``, like :func:`now_ns` and ``time.monotonic_ns()``.

The names in :mod:`sa_profile.compat` can be imported from this package too.
"""

from typing import TYPE_CHECKING

from ._sa_profile import (
    __version__,
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
from . import _session, compat as _compat, merge as _merge
from ._native_files import include_path, library_path, preload_path
from ._notebook import recording, start, stop
from .recorder import is_enabled
from ._tables import Tables, tables
from ._tracking.decorators import track

from ._merge_report import MergeReport, merge  # after the drop-in's module `merge`: the function replaces it as the attribute `merge`

if TYPE_CHECKING:
    from .compat import (
        ProfileConfig as ProfileConfig,
        ProfileRecorder as ProfileRecorder,
        configure_profiler as configure_profiler,
        create_profile_config as create_profile_config,
        get_profiler as get_profiler,
        load_profile_config as load_profile_config,
        merge_fragments as merge_fragments,
        merge_profile as merge_profile,
        profile_duration as profile_duration,
        profile_instant as profile_instant,
        profile_span as profile_span,
        start_profile as start_profile,
        stop_profile as stop_profile,
    )
else:

    def __getattr__(name):
        """Returns a name of the drop-in, which :mod:`sa_profile.compat` defines."""
        if name in _compat.__all__:
            return getattr(_compat, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "__version__",
    "AsyncSpan",
    "Launch",
    "MergeReport",
    "Request",
    "Span",
    "Tables",
    "async_span",
    "begin",
    "counter",
    "directory",
    "dropped",
    "duration",
    "end",
    "finish",
    "flow",
    "flush",
    "fragment",
    "include_path",
    "instant",
    "is_enabled",
    "is_main",
    "launch_timed",
    "launch_walls",
    "levels",
    "library_path",
    "merge",
    "now_ns",
    "preload_path",
    "recording",
    "request",
    "run",
    "set_process_name",
    "set_thread_name",
    "span",
    "start",
    "stop",
    "tables",
    "trace",
    "track",
]

# Programs that use the drop-in import these functions from its module `merge`, which the function of that name hides.
vars(merge).update({name: getattr(_merge, name) for name in _merge.__all__})


def __dir__() -> list[str]:
    return __all__


_session.watch()
if _hook_path := _session.environment().get("SA_PROFILE_HOOKS"):
    from ._hooks import hook_file as _hook_file

    _hook_file.watch_once(_hook_path)
