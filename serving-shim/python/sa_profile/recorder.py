"""The drop-in for pypto-serving's profiler: the recorder of the process, and the functions of its call sites."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from . import _sa_profile, _session
from ._configuration import directory_problem
from .env import DEFAULT_OUTPUT, ProfileConfig, load_profile_config
from ._previous_runs import move_to_previous
from ._profile_recorder import NOTHING, ProfileRecorder
from ._stderr import say

_profiler: ProfileRecorder | None = None
_profiler_pid: int | None = None
# That of this process: to ask the system takes as long as to record an event.
_pid = os.getpid()
# What configure_profiler() was given: it holds for forked children too.
_configured: ProfileConfig | None = None


def _after_fork_in_child() -> None:
    global _pid
    _pid = os.getpid()


os.register_at_fork(after_in_child=_after_fork_in_child)


# The directory that was found writable last. One that was not is looked at again.
_writable: Path | None = None


def get_profiler(*, process_name: str | None = None, initially_active: bool = True) -> ProfileRecorder:
    """The recorder of this process, made at the first call and again in the child of a fork. Another ``process_name`` renames the process."""
    profiler = _profiler
    if profiler is None or _profiler_pid != _pid:
        profiler = _make_profiler(process_name, initially_active)
    if process_name is not None and process_name != profiler.process_name:
        profiler._rename(process_name)
    return profiler


def configure_profiler(
    config: ProfileConfig, *, process_name: str | None = None, initially_active: bool = True
) -> ProfileRecorder:
    """Makes the recorder of this process anew, for a configuration. In the main process what earlier runs left is put aside."""
    global _configured
    with _session.lock:
        if _profiler is not None and _profiler_pid == _pid:
            _profiler.close()
        _configured = config
        is_new_run = config.enabled and _session.leads()
        return _install(config, process_name, initially_active, is_new_run)


def start_profile() -> bool:
    """Begins to record; in the main process a new run, and the earlier one stays in ``previous/``. Returns whether it did; a second call does nothing."""
    profiler = _controlled_profiler()
    with _session.lock:
        if not profiler.enabled or profiler.active:
            return False
        if _session.leads():
            _session.lead()
            move_to_previous(profiler.config.fragments_dir)
            _remove(profiler.config.trace_file)
        return profiler._begin(anew=True)


def stop_profile() -> bool:
    """Ends recording in this process. Returns whether it did; a second call does nothing."""
    return _controlled_profiler().stop()


def merge_profile() -> int:
    """Ends this process's recording and merges the run; returns how many events the trace has, 0 where nothing was to be recorded."""
    profiler = _controlled_profiler()
    if not profiler.enabled:
        return 0
    profiler.close()
    try:
        return merge_fragments(profiler.config.fragments_dir, profiler.config.trace_file)
    except OSError as error:
        say(error)  # the fragments are there, and the server goes on
        return 0


def merge_fragments(fragments_dir: str | os.PathLike[str], trace_file: str | os.PathLike[str]) -> int:
    """Merges ``trace.*.jsonl`` in the order of their names; returns how many events the trace has.

    The Rust merge does so without the interpreter's lock: other threads and the event loop's clients go on meanwhile. Lines stand in the trace as they stand in the fragments, those without a time or a process included; what is no JSON object is left out, and counted in the trace's ``otherData``.
    What killed processes had not written to their fragments yet is there as well. The trace takes the place of an earlier one when it is whole; the fragments stay.
    """
    trace_file = Path(trace_file)
    trace_file.parent.mkdir(parents=True, exist_ok=True)
    return _sa_profile.merge(os.fspath(fragments_dir), os.fspath(trace_file))


def _controlled_profiler() -> ProfileRecorder:
    """Returns the recorder of this process for a call that starts or stops it.

    A recorder made here is active only if the package's own functions are already recording: the call is then about what they began.
    """
    return get_profiler(initially_active=_profiler is None and _sa_profile.is_under_way())


def is_enabled(level: str | None = None) -> bool:
    """Whether anything is recorded, or events of a level (``"e2e"``, ``"kernel"``, ``"verbose"``): then costly args are worth computing. To ask starts nothing.

    Before anything was recorded: whether that is asked for, and the place can be written. Without a level, where the process has a profiler (:func:`get_profiler`):
    whether that is to record, though it may be stopped just now::

        if sa_profile.is_enabled("verbose"):
            sa_profile.instant("batch", level="verbose", shapes=shapes())
    """
    profiler = _profiler
    if level is None and profiler is not None and _profiler_pid == _pid:
        return profiler.enabled and not profiler._is_refused
    is_asked = _sa_profile.is_enabled(level) or level is None and _sa_profile.is_to_begin()
    return is_asked and (_sa_profile.is_under_way() or _is_place_writable())


def _is_place_writable() -> bool:
    """Whether the place that the environment names can be written."""
    global _writable
    found = _sa_profile.configuration()  # None: a variable is there and empty, which turns on the drop-in alone
    directory = Path(DEFAULT_OUTPUT if found is None else found["directory"]).absolute()
    if directory != _writable:
        _writable = directory if directory_problem(directory) is None else None
    return _writable is not None


def profile_span(
    name: str, *, cat: str = "e2e", level: str = "e2e", args: dict[str, Any] | None = None
) -> _sa_profile.Span | _sa_profile.Nothing:
    """A span of the process's recorder: a context manager. ``args`` is read when it ends."""
    profiler = get_profiler()
    return profiler.span(name, cat=cat, level=level, args=args) if profiler.enabled else NOTHING


def profile_instant(name: str, *, cat: str = "e2e", level: str = "e2e", args: dict[str, Any] | None = None) -> None:
    """An instant of the process's recorder."""
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
    """A span that has ended, of the process's recorder."""
    get_profiler().duration(name, dur_us=dur_us, cat=cat, level=level, args=args, ts_us=ts_us)


def _make_profiler(process_name: str | None, initially_active: bool) -> ProfileRecorder:
    with _session.lock:
        parent = _profiler
        if parent is not None and _profiler_pid == _pid:
            return parent  # another thread has made it meanwhile
        if _configured is not None and parent is not None and parent.config is _configured:
            return _install(_configured, process_name, initially_active and parent.active, False)
        config = load_profile_config()
        # Only the first process of a run has no such variable: its children, and what it executes, go on with its run.
        is_new_run = config.enabled and _session.is_first() and not _session.is_under_way(config)
        return _install(config, process_name, initially_active, is_new_run)


def _install(
    config: ProfileConfig, process_name: str | None, initially_active: bool, is_new_run: bool
) -> ProfileRecorder:
    if is_new_run:
        _session.lead()
        _prepare_run(config)
    profiler = ProfileRecorder(config, process_name=process_name, initially_active=False)
    if initially_active:
        profiler._begin(anew=is_new_run)
    _put(Installed(profiler, _pid))  # at last: other threads record as soon as they find it
    return profiler


class Installed(NamedTuple):
    """The recorder of a process, and whose."""

    profiler: ProfileRecorder | None
    pid: int | None


# Of a process that has made none.
NONE = Installed(None, None)


def installed() -> Installed:
    """The recorder that is there, be it of the process that forked this one."""
    return Installed(_profiler, _profiler_pid)


def stand_in(config: ProfileConfig, number: int) -> ProfileRecorder:
    """Makes the recorder of this process anew, for a recording that is under way. It has the name of the one before."""
    before = _profiler if _profiler_pid == _pid else None
    profiler = ProfileRecorder(config, process_name=before.process_name if before else None, initially_active=False)
    profiler._join(number)
    _put(Installed(profiler, _pid))
    return profiler


def put_back(stand_in: ProfileRecorder, earlier: Installed) -> None:
    """Puts an earlier recorder in the place of one that stood in for it, unless the program has put another one there."""
    if _profiler is stand_in:
        _put(earlier)


def _put(found: Installed) -> None:
    global _profiler, _profiler_pid
    _profiler, _profiler_pid = found


def _prepare_run(config: ProfileConfig) -> None:
    """Makes the place ready for a new run: fragments that are there are put aside, and nothing else is touched."""
    move_to_previous(config.fragments_dir)


def _remove(trace_file: Path) -> None:
    try:
        trace_file.unlink(missing_ok=True)
    except OSError:
        pass  # the next merge replaces it


# Where the package lies under several names, each has a recorder.
_sa_profile.recorders.append(sys.modules[__name__])
