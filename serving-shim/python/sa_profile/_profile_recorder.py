"""A recorder as pypto-serving's profiler has it: :class:`ProfileRecorder`."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from . import _sa_profile, _session
from .env import LEVELS, ProfileConfig

# A span that is not recorded.
NOTHING = _sa_profile.Nothing()


class ProfileRecorder:
    """Records into the place of a configuration. The process has one recording at a time: a recorder for another place ends that of the one before."""

    def __init__(self, config: ProfileConfig, *, process_name: str | None = None, initially_active: bool = True):
        self.config = config
        self.enabled = config.enabled  # False: it never records, not even after start()
        self.pid = os.getpid()
        self.process_name = process_name or _session.default_name()
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
        return self._session == _sa_profile.session()

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
        _sa_profile.close()
        return True

    def close(self) -> bool:
        """Ends recording, as :meth:`stop`."""
        return self.stop()

    def includes(self, level: str) -> bool:
        """Whether events of a level are recorded now."""
        return self._session == _sa_profile.session() and (level in self._levels or "verbose" in self._levels)

    def span(
        self, name: str, *, cat: str = "e2e", level: str = "e2e", args: dict[str, Any] | None = None
    ) -> _sa_profile.Span | _sa_profile.Nothing:
        """A span: a context manager. ``args`` is read when it ends, so that what is put in meanwhile is recorded."""
        if not self.includes(level):
            return NOTHING
        try:
            return _sa_profile.dict_span(name, cat, level, args, True)
        except (TypeError, ValueError):
            return _sa_profile.dict_span(_text(name), _text(cat), _level(level), _dict(args), True)

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
        number = _session.begin(self.config, self.process_name, anew=anew)
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
    """A level that the recorder knows: all others are recorded with ``verbose``, and asked for with it."""
    return level if level in LEVELS else "verbose"


def _kernel_tid(tid: int | None) -> int | None:
    """The id that events of a thread have."""
    threads = (thread for thread in threading.enumerate() if thread.ident == tid)
    thread = next(threads, None)
    return tid if thread is None else thread.native_id
