"""The drop-in for pypto-serving's profiler: the recorder of this process, and the functions that call sites use."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from . import _sa_profile, _session
from ._configuration import directory_problem
from .env import DEFAULT_OUTPUT, ProfileConfig, load_profile_config
from ._previous_runs import move_to_previous
from ._profile_recorder import NULL_SPAN, ProfileRecorder
from ._stderr import say

_profiler: ProfileRecorder | None = None
_profiler_pid: int | None = None
# The pid of this process. A system call takes as long as recording an event.
_pid = os.getpid()
# The argument of configure_profiler(). Forked children use it too.
_configured: ProfileConfig | None = None


def _after_fork_in_child() -> None:
    global _pid
    _pid = os.getpid()


os.register_at_fork(after_in_child=_after_fork_in_child)


# The directory that was last found to be writable. Others are checked again.
_writable: Path | None = None


def get_profiler(*, process_name: str | None = None, initially_active: bool = True) -> ProfileRecorder:
    """Returns the recorder of this process. Creates it on the first call, and again in the child of a fork. A different ``process_name`` renames the process."""
    profiler = _profiler
    if profiler is None or _profiler_pid != _pid:
        profiler = _create_profiler(process_name, initially_active)
    if process_name is not None and process_name != profiler.process_name:
        profiler._rename(process_name)
    return profiler


def configure_profiler(
    config: ProfileConfig, *, process_name: str | None = None, initially_active: bool = True
) -> ProfileRecorder:
    """Replaces the recorder of this process by one for this configuration. In the main process, this moves fragments of earlier runs to ``previous/``."""
    global _configured
    with _session.lock:
        if _profiler is not None and _profiler_pid == _pid:
            _profiler.close()
        _configured = config
        is_new_run = config.enabled and _session.begins_runs()
        return _install(config, process_name, initially_active, is_new_run)


def start_profile() -> bool:
    """Starts recording. In the main process this begins a new run, and the earlier one moves to ``previous/``. Returns false if it was recording already or is disabled."""
    profiler = _controlled_profiler()
    with _session.lock:
        if not profiler.enabled or profiler.active:
            return False
        if _session.begins_runs():
            _session.export_main_pid()
            move_to_previous(profiler.config.fragments_dir)
            _remove(profiler.config.trace_file)
        return profiler._begin(new_run=True)


def stop_profile() -> bool:
    """Stops recording in this process. Returns false if it was not recording."""
    return _controlled_profiler().stop()


def merge_profile() -> int:
    """Stops recording in this process and merges the run. Returns the number of events in the trace, or 0 if profiling is disabled."""
    profiler = _controlled_profiler()
    if not profiler.enabled:
        return 0
    profiler.close()
    try:
        return merge_fragments(profiler.config.fragments_dir, profiler.config.trace_file)
    except OSError as error:
        say(error)  # the fragments are still there, and the server continues
        return 0


def merge_fragments(fragments_dir: str | os.PathLike[str], trace_file: str | os.PathLike[str]) -> int:
    """Merges ``trace.*.jsonl`` in the order of their names. Returns the number of events in the trace.

    The merge runs in Rust without the GIL, so other threads and the event loop continue meanwhile. It copies lines unchanged, even those without a time or a process. Lines that are
    not JSON objects are left out, and the trace's ``otherData`` counts them. The merge also recovers what killed processes had not yet written to their fragments.
    The trace replaces an earlier one once it is complete. The fragments are kept.
    """
    trace_file = Path(trace_file)
    trace_file.parent.mkdir(parents=True, exist_ok=True)
    return _sa_profile.merge(os.fspath(fragments_dir), os.fspath(trace_file))


def _controlled_profiler() -> ProfileRecorder:
    """Returns the recorder of this process, for a call that starts or stops it.

    A recorder created here is active only if the package's own functions are already recording, because the call then refers to that recording.
    """
    return get_profiler(initially_active=_profiler is None and _sa_profile.is_under_way())


def is_enabled(level: str | None = None) -> bool:
    """Returns true if anything is recorded, or events of this level (``"e2e"``, ``"kernel"``, ``"verbose"``). Use it before computing costly args. The call starts nothing.

    Before the first event it returns true if recording is requested and its directory can be written. If the process has a profiler (:func:`get_profiler`), a call without a level
    returns true if that profiler is enabled, even while it is stopped::

        if sa_profile.is_enabled("verbose"):
            sa_profile.instant("batch", level="verbose", shapes=shapes())
    """
    profiler = _profiler
    if level is None and profiler is not None and _profiler_pid == _pid:
        return profiler.enabled and not profiler._is_refused
    is_requested = _sa_profile.is_enabled(level) or level is None and _sa_profile.is_pending()
    return is_requested and (_sa_profile.is_under_way() or _is_directory_writable())


def _is_directory_writable() -> bool:
    """Returns true if the directory that the environment names can be written."""
    global _writable
    found = _sa_profile.configuration()  # None if a variable is set but empty: that enables only the drop-in
    directory = Path(DEFAULT_OUTPUT if found is None else found["directory"]).absolute()
    if directory != _writable:
        _writable = directory if directory_problem(directory) is None else None
    return _writable is not None


def profile_span(
    name: str, *, cat: str = "e2e", level: str = "e2e", args: dict[str, Any] | None = None
) -> _sa_profile.Span | _sa_profile.NullSpan:
    """Returns a span of the process's recorder, as a context manager. ``args`` is read when the span ends."""
    profiler = get_profiler()
    return profiler.span(name, cat=cat, level=level, args=args) if profiler.enabled else NULL_SPAN


def profile_instant(name: str, *, cat: str = "e2e", level: str = "e2e", args: dict[str, Any] | None = None) -> None:
    """Records an instant with the process's recorder."""
    profiler = get_profiler()
    if profiler.enabled:
        profiler.instant(name, cat=cat, level=level, args=args)


def profile_duration(
    name: str,
    *,
    dur_us: float,
    cat: str = "e2e",
    level: str = "e2e",
    args: dict[str, Any] | None = None,
    ts_us: float | None = None,
) -> None:
    """Records a span that has already ended with the process's recorder."""
    get_profiler().duration(name, dur_us=dur_us, cat=cat, level=level, args=args, ts_us=ts_us)


def _create_profiler(process_name: str | None, initially_active: bool) -> ProfileRecorder:
    with _session.lock:
        parent = _profiler
        if parent is not None and _profiler_pid == _pid:
            return parent  # another thread created it in the meantime
        if _configured is not None and parent is not None and parent.config is _configured:
            return _install(_configured, process_name, initially_active and parent.active, False)
        config = load_profile_config()
        # Only the first process of a run lacks the variable MAIN_PID. Its children, and programs that it executes, continue its run.
        is_new_run = config.enabled and _session.is_first_process() and not _session.is_under_way(config)
        return _install(config, process_name, initially_active, is_new_run)


def _install(
    config: ProfileConfig, process_name: str | None, initially_active: bool, is_new_run: bool
) -> ProfileRecorder:
    if is_new_run:
        _session.export_main_pid()
        _prepare_run(config)
    profiler = ProfileRecorder(config, process_name=process_name, initially_active=False)
    if initially_active:
        profiler._begin(new_run=is_new_run)
    _set_installed(Installed(profiler, _pid))  # last, because other threads record as soon as they find it
    return profiler


class Installed(NamedTuple):
    """A recorder and the pid of its process."""

    profiler: ProfileRecorder | None
    pid: int | None


# For a process without a recorder.
NONE = Installed(None, None)


def installed() -> Installed:
    """Returns the current recorder. In a forked child it may still be the parent's."""
    return Installed(_profiler, _profiler_pid)


def stand_in(config: ProfileConfig, number: int) -> ProfileRecorder:
    """Replaces the recorder of this process by one for a recording that has already begun. It keeps the process name of the previous recorder."""
    before = _profiler if _profiler_pid == _pid else None
    profiler = ProfileRecorder(config, process_name=before.process_name if before else None, initially_active=False)
    profiler._join(number)
    _set_installed(Installed(profiler, _pid))
    return profiler


def put_back(stand_in: ProfileRecorder, earlier: Installed) -> None:
    """Restores the earlier recorder, unless the program has replaced the stand-in by another one."""
    if _profiler is stand_in:
        _set_installed(earlier)


def _set_installed(found: Installed) -> None:
    global _profiler, _profiler_pid
    _profiler, _profiler_pid = found


def _prepare_run(config: ProfileConfig) -> None:
    """Prepares the directory for a new run: moves existing fragments to ``previous/`` and touches nothing else."""
    move_to_previous(config.fragments_dir)


def _remove(trace_file: Path) -> None:
    try:
        trace_file.unlink(missing_ok=True)
    except OSError:
        pass  # the next merge will replace it


# If the package is imported under several names, each copy has its own recorder.
_sa_profile.recorders.append(sys.modules[__name__])
