"""Provides :class:`ProfileRecorder`, the recorder of pypto-serving's profiler."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from . import _sa_profile, _session
from .env import LEVELS, ProfileConfig

# Stands for a span that is not recorded.
NULL_SPAN = _sa_profile.NullSpan()


class ProfileRecorder:
    """Records into the directory of a configuration. A process has one recording at a time: a recorder for another directory ends the previous recording."""

    def __init__(self, config: ProfileConfig, *, process_name: str | None = None, initially_active: bool = True):
        self.config = config
        self.enabled = config.enabled  # if False it never records, not even after start()
        self.pid = os.getpid()
        self.process_name = process_name or _session.default_name()
        self._levels = config.levels
        self._fragment_file = config.fragments_dir / f"trace.{self.pid}.jsonl"
        self._session = 0
        self._has_begun = False
        self._is_refused = False
        if initially_active:
            self._begin(new_run=False)

    @property
    def active(self) -> bool:
        """True while it records."""
        return self._session == _sa_profile.session()

    def start(self) -> bool:
        """Starts recording. After a stop this begins a new run, and the earlier one moves to ``previous/``. Returns false if it was already recording or cannot record."""
        if self.active:
            return False
        return self._begin(new_run=self._has_begun)

    def stop(self) -> bool:
        """Stops recording. The fragment then consists of plain JSON lines. Returns false if it was not recording."""
        if not self.active:
            return False
        self._session = 0
        _sa_profile.close()
        return True

    def close(self) -> bool:
        """Stops recording, like :meth:`stop`."""
        return self.stop()

    def includes(self, level: str) -> bool:
        """Returns true if events of this level are currently recorded."""
        return self._session == _sa_profile.session() and (level in self._levels or "verbose" in self._levels)

    def span(
        self, name: str, *, cat: str = "e2e", level: str = "e2e", args: dict[str, Any] | None = None
    ) -> _sa_profile.Span | _sa_profile.NullSpan:
        """Returns a span, as a context manager. ``args`` is read when the span ends, so it may be changed until then."""
        if not self.includes(level):
            return NULL_SPAN
        try:
            return _sa_profile.dict_span(name, cat, level, args, True)
        except (TypeError, ValueError):
            return _sa_profile.dict_span(_text(name), _text(cat), _level(level), _dict(args), True)

    def instant(self, name: str, *, cat: str = "e2e", level: str = "e2e", args: dict[str, Any] | None = None) -> None:
        """Records an instant."""
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
        """Records a span that has already ended. Its length is in whole µs. It ends now, unless ``ts_us`` is its start."""
        if self.includes(level):
            dur_ns = max(0, int(dur_us)) * 1000
            start_ns = None if ts_us is None else max(0, int(ts_us)) * 1000
            _sa_profile.dict_duration(_text(name), _text(cat), _level(level), dur_ns, start_ns, _dict(args))

    def metadata(self, name: str, value: Any, *, tid: int | None = None) -> None:
        """Records metadata about the process, or about the thread with this ``threading.get_ident()``: ``process_name``, ``thread_name`` or any other name."""
        if not self.active:
            return
        if name == "process_name" and tid is None:
            _sa_profile.set_process_name(str(value))
        elif name == "thread_name" and tid in (None, threading.get_ident()):
            _sa_profile.set_thread_name(str(value))
        else:
            _sa_profile.metadata(_text(name), _kernel_tid(tid), {"name": value})

    def _begin(self, *, new_run: bool) -> bool:
        if not self.enabled:
            return False
        number = _session.begin(self.config, self.process_name, new_run=new_run)
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


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _dict(args: Any) -> dict[str, Any] | None:
    return args if args is None or isinstance(args, dict) else dict(args)


def _level(level: str) -> str:
    """Returns the level if the recorder has it. All others are recorded at ``verbose``."""
    return level if level in LEVELS else "verbose"


def _kernel_tid(tid: int | None) -> int | None:
    """Returns the thread id that events of a thread carry."""
    threads = (thread for thread in threading.enumerate() if thread.ident == tid)
    thread = next(threads, None)
    return tid if thread is None else thread.native_id
