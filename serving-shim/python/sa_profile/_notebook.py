"""Recordings that a notebook, a test or a script starts and stops itself, independently of the environment."""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import TracebackType
from typing import ClassVar

from . import _sa_profile, _session, recorder
from .env import DEFAULT_OUTPUT, DIR, LEVEL, MAIN_PID, OUTPUT, RUN, START, ProfileConfig, create_profile_config
from ._merge_report import MergeReport, merge_paths
from ._profile_recorder import ProfileRecorder
from ._stderr import say

_Path = str | os.PathLike[str]
_Levels = str | Iterable[str] | None


# The variables that a recording replaces while it lasts.
_VARIABLES = (DIR, OUTPUT, LEVEL, START, RUN, MAIN_PID)


class _SavedState:
    """The state that a recording replaces while it lasts: variables, so that child processes record into it too, and the drop-in's recorders."""

    def __init__(self) -> None:
        self._variables = {name: os.environ.get(name) for name in _VARIABLES}
        self._recorders = {module: module.installed() for module in _sa_profile.recorders}

    def restore(self, stand_ins: list[ProfileRecorder]) -> None:
        """Restores the earlier state, except for recorders that the program has replaced in the meantime. A copy of the package that was imported later had no recorder."""
        _set(self._variables)
        for module, stand_in in zip(_sa_profile.recorders, stand_ins):
            module.put_back(stand_in, self._recorders.get(module, recorder.NONE))


class _Recording:
    """A recording started here. Several threads may have recordings, but the process records only into the last one."""

    active: ClassVar[list[_Recording]] = []

    def __init__(self, config: ProfileConfig):
        self.config = config
        with _session.lock:
            before, earlier = _SavedState(), _sa_profile.session()
            self._base: _SavedState = self.active[0]._base if self.active else before
            self._stand_ins: list[ProfileRecorder] = []
            try:
                self._begin()
            except BaseException:
                before.restore(self._stand_ins)
                if _sa_profile.session() != earlier:
                    _sa_profile.close()
                raise
            if self.number:
                self.active.append(self)
            else:
                before.restore([])

    def _begin(self) -> None:
        _set(dict.fromkeys(_VARIABLES) | _request_variables(self.config))
        self.number = _session.begin(self.config, _process_name(), new_run=True)
        if self.number:
            for module in _sa_profile.recorders:
                self._stand_ins.append(module.stand_in(self.config, self.number))
            self._own = _SavedState()

    def end(self) -> MergeReport | None:
        """Stops the recording, unless something else has, and merges it. Returns None if there is no trace, after a message on stderr."""
        with _session.lock:
            self.active.remove(self)
            state = self.active[-1]._own if self.active else self._base
            state.restore(self._stand_ins)
            for profiler in self._stand_ins:
                profiler.stop()
        try:
            return merge_paths([os.fspath(self.config.fragments_dir)], self.config.trace_file)
        except OSError as error:
            say(error)  # the fragments are still there, and the program continues
            return None


_started: _Recording | None = None


def start(directory: _Path = DEFAULT_OUTPUT, *, levels: _Levels = None) -> bool:
    """Starts recording into a directory, until :func:`stop`. Child processes that start in the meantime record there too.

    Arguments:
        directory: the run directory, or the path of the trace if it ends in ``.json``. Its fragments are then in ``….json.fragments``.
        levels: one or more of ``"e2e"``, ``"kernel"`` and ``"verbose"``, as a comma-separated text or a list. The default is ``e2e,kernel``.

    Returns false if it cannot record, after a message on stderr. A process has one recording at a time, so an earlier one ends::

        sa_profile.start("profile_out")
        run()
        print(sa_profile.stop())
    """
    global _started
    config = _config(directory, levels)
    stop()
    started = _Recording(config)
    if not started.number:
        return False
    before, _started = _started, started
    if before is not None:
        before.end()  # another thread started it in the meantime
    return True


def stop() -> MergeReport | None:
    """Stops the recording that :func:`start` started, and merges it. Returns the report, or None if there is no recording or no trace. If there is no trace, a message on stderr says why::

        sa_profile.start("profile_out")
        report = sa_profile.stop()
    """
    global _started
    started, _started = _started, None
    return started.end() if started is not None else None


class recording:
    """Records a ``with`` block and merges it into a trace. ``output`` is a run directory or the path of the trace, and ``levels`` lists the levels, as for :func:`start`.

    After the block, ``report`` is the report of the merge, or None if there is no trace. In that case a message on stderr says why. Exceptions of the block are raised as usual::

        with sa_profile.recording("trace.json") as recorded:
            run()
        assert recorded.report.is_clean
    """

    report: MergeReport | None = None

    def __init__(self, output: _Path, *, levels: _Levels = None):
        self._config = _config(output, levels)
        self._started: _Recording | None = None

    def __enter__(self) -> recording:
        self.report = None
        self._started = _Recording(self._config)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None:
        started, self._started = self._started, None
        if started is not None and started.number:
            self.report = started.end()


def _config(output: _Path, levels: _Levels) -> ProfileConfig:
    # Absolute, because the program may change its working directory before the end.
    return create_profile_config(enabled=True, output=os.path.abspath(output), levels=levels)


def _request_variables(config: ProfileConfig) -> dict[str, str]:
    """Returns the variables that ask for this recording. The run's own variables are added once it has started."""
    place = config.output.absolute()
    return {OUTPUT if config.output == config.trace_file else DIR: str(place), LEVEL: ",".join(sorted(config.levels))}


def _process_name() -> str:
    """Returns the process name from the drop-in's recorder, or the default name."""
    profiler, pid = recorder.installed()
    return _session.default_name() if profiler is None or pid != os.getpid() else profiler.process_name


def _set(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
