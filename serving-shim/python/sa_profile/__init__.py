"""Records what a Python process does, for one trace of all processes of an LLM server.

Set ``SA_PROFILE_DIR`` before the program starts; afterwards ``trace-merge $SA_PROFILE_DIR`` makes ``trace.json``, for Perfetto::

    import sa_profile

    STEP = sa_profile.span("step", cat="engine")
    with STEP:
        sa_profile.instant("scheduled", requests=3)

A notebook or a test records without a variable::

    with sa_profile.recording("trace.json"):
        run()

Nothing is recorded, and no file written, unless one of ``SA_PROFILE_DIR``, ``SA_PROFILE_OUTPUT`` and ``SA_PROFILE_LEVEL`` is set, or the program calls :func:`start` or
:class:`recording`. Events have a name; ``cat``, a category by which a trace can be filtered; ``level``, one of ``"e2e"``, ``"kernel"`` and ``"verbose"``, of which
``SA_PROFILE_LEVEL`` says those that are recorded; and args, the other keywords of a call. Times are ns of ``CLOCK_MONOTONIC``, as :func:`now_ns` and ``time.monotonic_ns()``.

What :mod:`sa_profile.compat` has can be taken from here too.
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
from ._track import track

from ._merge_report import MergeReport, merge  # after the module `merge` of the drop-in, whose name it takes

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

# Programs that use the drop-in find its functions under the name of its module.
vars(merge).update({name: getattr(_merge, name) for name in _merge.__all__})


def __dir__() -> list[str]:
    return __all__


_session.watch()
