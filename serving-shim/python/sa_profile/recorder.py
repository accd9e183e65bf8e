"""The drop-in for pypto-serving's profiler: :class:`ProfileRecorder`, the one of the process, and the functions of its call sites."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

from . import _sa_profile, place, session
from .env import DEFAULT_OUTPUT, LEVELS, ProfileConfig, load_profile_config
from .fragments import merge_fragments
from .previous_runs import move_to_previous
from .stderr import say

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
_session, _dict_span = _sa_profile.session, _sa_profile.dict_span
# A span that is not recorded.
_NOTHING = _sa_profile.Nothing()


class ProfileRecorder:
    """Records into the place of a configuration. The process has one recording at a time: a recorder for another place ends that of the one before."""

    def __init__(self, config: ProfileConfig, *, process_name: str | None = None, initially_active: bool = True):
        self.config = config
        self.enabled = config.enabled
        self.pid = os.getpid()
        self.process_name = process_name or session.default_name()
        self._levels = config.levels
        self._fragment_file = config.fragments_dir / f"trace.{self.pid}.jsonl"
        self._session = 0
        self._has_begun = False
        self._is_refused = False
        if initially_active:
            self._begin(anew=False)

    @property
    def active(self) -> bool:
        """Whether it records now."""
        return self._session == session.current()

    def start(self) -> bool:
        """Begins to record, after a stop in a new run: the earlier one stays in ``previous/``. Returns whether it did; a second call does nothing."""
        if self.active:
            return False
        return self._begin(anew=self._has_begun)

    def stop(self) -> bool:
        """Ends recording: the fragment is plain lines then. Returns whether it did; a second call does nothing."""
        if not self.active:
            return False
        self._session = 0
        session.end()
        return True

    def close(self) -> bool:
        """Ends recording, as :meth:`stop`."""
        return self.stop()

    def includes(self, level: str) -> bool:
        """Whether events of a level are recorded now."""
        # As `active`, which takes as long again: a process that records nothing asks this at each span.
        return self._session == _session() and (level in self._levels or "verbose" in self._levels)

    def span(
        self, name: str, *, cat: str = "e2e", level: str = "e2e", args: dict[str, Any] | None = None
    ) -> _sa_profile.Span | _sa_profile.Nothing:
        """A span: a context manager. ``args`` is read when it ends, so that what is put in meanwhile is recorded."""
        # As `includes`, whose call takes a tenth of a span's time.
        if self._session != _session() or not (level in self._levels or "verbose" in self._levels):
            return _NOTHING
        try:
            return _dict_span(name, cat, level, args, True)
        except (TypeError, ValueError):
            return _dict_span(_text(name), _text(cat), _level(level), _dict(args), True)

    def instant(self, name: str, *, cat: str = "e2e", level: str = "e2e", args: dict[str, Any] | None = None) -> None:
        """An instant."""
        if self.includes(level):
            try:
                _sa_profile.dict_instant(name, cat, level, args)
            except (TypeError, ValueError):
                _sa_profile.dict_instant(_text(name), _text(cat), _level(level), _dict(args))

    def duration(
        self,
        name: str,
        *,
        dur_us: float,
        cat: str = "e2e",
        level: str = "e2e",
        args: dict[str, Any] | None = None,
        ts_us: float | None = None,
    ) -> None:
        """A span that has ended: in whole µs, and just now unless ``ts_us`` says when it began."""
        if self.includes(level):
            dur_ns = max(0, int(dur_us)) * 1000
            start_ns = None if ts_us is None else max(0, int(ts_us)) * 1000
            _sa_profile.dict_duration(_text(name), _text(cat), _level(level), dur_ns, start_ns, _dict(args))

    def metadata(self, name: str, value: Any, *, tid: int | None = None) -> None:
        """A record about the process, or about a thread of this ``threading.get_ident()``: ``process_name``, ``thread_name`` or any other."""
        if not self.active:
            return
        if name == "process_name" and tid is None:
            _sa_profile.set_process_name(str(value))
        elif name == "thread_name" and tid in (None, threading.get_ident()):
            _sa_profile.set_thread_name(str(value))
        else:
            _sa_profile.metadata(_text(name), _kernel_tid(tid), {"name": value})

    def _begin(self, *, anew: bool) -> bool:
        if not self.enabled:
            return False
        number = session.begin(self.config, self.process_name, anew=anew)
        self._is_refused = number == 0
        if self._is_refused:
            self._session = 0
            return False
        self._join(number)
        return True

    def _join(self, number: int) -> None:
        self._session = number
        self._has_begun = True
        self._fragment_file = Path(_sa_profile.fragment() or self._fragment_file)

    def _rename(self, process_name: str) -> None:
        self.process_name = process_name
        self.metadata("process_name", process_name)


def get_profiler(*, process_name: str | None = None, initially_active: bool = True) -> ProfileRecorder:
    """The recorder of this process, made at the first call and again in the child of a fork. Another ``process_name`` renames the process."""
    profiler = _profiler
    if profiler is None or _profiler_pid != _pid:
        profiler = _make_profiler(process_name, initially_active)
    if process_name is not None and process_name != profiler.process_name:
        profiler._rename(process_name)
    return profiler


_own_get_profiler = get_profiler


def configure_profiler(
    config: ProfileConfig, *, process_name: str | None = None, initially_active: bool = True
) -> ProfileRecorder:
    """Makes the recorder of this process anew, for a configuration. In the main process what earlier runs left is put aside."""
    global _configured
    with session.lock:
        if _profiler is not None and _profiler_pid == _pid:
            _profiler.close()
        _configured = config
        is_new_run = config.enabled and session.leads()
        return _install(config, process_name, initially_active, is_new_run)


def start_profile() -> bool:
    """Begins to record; in the main process a new run, and the earlier one stays in ``previous/``. Returns whether it did; a second call does nothing."""
    profiler = get_profiler()
    with session.lock:
        if not profiler.enabled or profiler.active:
            return False
        if session.leads():
            session.lead()
            move_to_previous(profiler.config.fragments_dir)
            _remove(profiler.config.trace_file)
        return profiler._begin(anew=True)


def stop_profile() -> bool:
    """Ends recording in this process. Returns whether it did; a second call does nothing."""
    return get_profiler().stop()


def merge_profile() -> int:
    """Ends this process's recording and merges the run; returns how many events the trace has, 0 where nothing was to be recorded."""
    profiler = get_profiler()
    if not profiler.enabled:
        return 0
    profiler.close()
    try:
        return merge_fragments(profiler.config.fragments_dir, profiler.config.trace_file)
    except OSError as error:
        say(error)  # the fragments are there, and the server goes on
        return 0


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
        _writable = directory if place.problem(directory) is None else None
    return _writable is not None


def profile_span(
    name: str, *, cat: str = "e2e", level: str = "e2e", args: dict[str, Any] | None = None
) -> _sa_profile.Span | _sa_profile.Nothing:
    """A span of the process's recorder: a context manager. ``args`` is read when it ends."""
    # As `get_profiler`, whose call takes a third of a span's time while nothing is recorded; a test may have put another one there.
    profiler = _profiler
    if profiler is None or _profiler_pid != _pid or get_profiler is not _own_get_profiler:
        profiler = get_profiler()
    if not profiler.enabled:
        return _NOTHING
    # What the method would do of most spans, without its call.
    if type(profiler) is ProfileRecorder and profiler._session == _session() and level in profiler._levels:
        try:
            return _dict_span(name, cat, level, args, True)
        except (TypeError, ValueError):
            pass  # the method takes what is no text
    return profiler.span(name, cat=cat, level=level, args=args)


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
    with session.lock:
        if _profiler is not None and _profiler_pid == _pid:
            return _profiler  # another thread has made it meanwhile
        return _make_alone(process_name, initially_active)


def _make_alone(process_name: str | None, initially_active: bool) -> ProfileRecorder:
    parent = _profiler
    if _configured is not None and parent is not None and parent.config is _configured:
        return _install(_configured, process_name, parent.active, False)
    config = load_profile_config()
    # Only the first process of a run has no such variable: its children, and what it executes, go on with its run.
    is_new_run = config.enabled and session.is_first() and not session.is_under_way(config)
    return _install(config, process_name, initially_active, is_new_run)


def _install(
    config: ProfileConfig, process_name: str | None, initially_active: bool, is_new_run: bool
) -> ProfileRecorder:
    if is_new_run:
        session.lead()
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


def installed() -> Installed:
    """The recorder that is there, be it of the process that forked this one."""
    return Installed(_profiler, _profiler_pid)


def stand_in(config: ProfileConfig, number: int) -> ProfileRecorder:
    """Makes the recorder of this process anew, for a recording that is under way. It has the name of the one before."""
    before = _profiler if _profiler_pid == _pid else None
    profiler = ProfileRecorder(config, process_name=before and before.process_name, initially_active=False)
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


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _dict(args: Any) -> dict[str, Any] | None:
    return args if args is None or isinstance(args, dict) else dict(args)


def _level(level: str) -> str:
    """A level that the recorder knows: all others are recorded with ``verbose``, and asked for with it."""
    return level if level in LEVELS else "verbose"


def _kernel_tid(tid: int | None) -> int | None:
    """The id that events of a thread have."""
    threads = (thread for thread in threading.enumerate() if thread.ident == tid)
    thread = next(threads, None)
    return tid if thread is None else thread.native_id


# Where the package lies under several names, each has a recorder.
_sa_profile.recorders.append(sys.modules[__name__])
