"""Recording that a notebook, a test or a script begins and ends itself, whatever the environment asks for."""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import TracebackType
from typing import ClassVar

from . import _sa_profile, _session, recorder
from .env import DEFAULT_OUTPUT, DIR, LEVEL, MAIN_PID, OUTPUT, RUN, START, ProfileConfig, create_profile_config
from ._merge_report import MergeReport, report_of
from ._profile_recorder import ProfileRecorder
from ._stderr import say

_Path = str | os.PathLike[str]
_Levels = str | Iterable[str] | None


# What a recording puts its own in the place of.
_VARIABLES = (DIR, OUTPUT, LEVEL, START, RUN, MAIN_PID)


class _Surroundings:
    """What a recording changes for as long as it lasts: variables, so that child processes record there too, and the drop-in's recorders."""

    def __init__(self) -> None:
        self._variables = {name: os.environ.get(name) for name in _VARIABLES}
        self._recorders = {module: module.installed() for module in _sa_profile.recorders}

    def put_back(self, stand_ins: list[ProfileRecorder]) -> None:
        """Has them as they were; a recorder that the program has put there meanwhile stays. A copy of the package that was imported later had none."""
        _set(self._variables)
        for module, stand_in in zip(_sa_profile.recorders, stand_ins):
            module.put_back(stand_in, self._recorders.get(module, recorder.NONE))


class _Begun:
    """A recording that was begun here. Threads may have several of them under way, of which the process records the last."""

    under_way: ClassVar[list[_Begun]] = []

    def __init__(self, config: ProfileConfig):
        self.config = config
        with _session.lock:
            before, earlier = _Surroundings(), _sa_profile.session()
            self._base: _Surroundings = self.under_way[0]._base if self.under_way else before
            self._stand_ins: list[ProfileRecorder] = []
            try:
                self._begin()
            except BaseException:
                before.put_back(self._stand_ins)
                if _sa_profile.session() != earlier:
                    _sa_profile.close()
                raise
            if self.number:
                self.under_way.append(self)
            else:
                before.put_back([])

    def _begin(self) -> None:
        _set(dict.fromkeys(_VARIABLES) | _asking(self.config))
        self.number = _session.begin(self.config, _process_name(), anew=True)
        if self.number:
            for module in _sa_profile.recorders:
                self._stand_ins.append(module.stand_in(self.config, self.number))
            self._own = _Surroundings()

    def end(self) -> MergeReport | None:
        """Ends it, unless something else has, and merges what it recorded. Nothing if there is no trace, which is said."""
        with _session.lock:
            self.under_way.remove(self)
            surroundings = self.under_way[-1]._own if self.under_way else self._base
            surroundings.put_back(self._stand_ins)
            for profiler in self._stand_ins:
                profiler.stop()
        try:
            return report_of([os.fspath(self.config.fragments_dir)], self.config.trace_file)
        except OSError as error:
            say(error)  # the fragments are there, and the program goes on
            return None


_begun: _Begun | None = None


def start(directory: _Path = DEFAULT_OUTPUT, *, levels: _Levels = None) -> bool:
    """Begins to record into a directory, until :func:`stop`. Child processes that start meanwhile record there too.

    Arguments:
        directory: the run directory, or the path of the trace if its suffix is ``.json``; its fragments lie in ``….json.fragments`` then.
        levels: ``"e2e"``, ``"kernel"``, ``"verbose"``, several of them with commas between or as a list; ``e2e,kernel`` by default.

    Returns whether it records; if not, a line on stderr says why. What was recorded before ends, since a process has one recording at a time::

        sa_profile.start("profile_out")
        run()
        print(sa_profile.stop())
    """
    global _begun
    config = _config(directory, levels)
    stop()
    begun = _Begun(config)
    if not begun.number:
        return False
    before, _begun = _begun, begun
    if before is not None:
        before.end()  # another thread has begun it meanwhile
    return True


def stop() -> MergeReport | None:
    """Ends what :func:`start` began, and merges it. Returns the report; None if nothing was begun, or if there is no trace, which a line on stderr says::

        sa_profile.start("profile_out")
        report = sa_profile.stop()
    """
    global _begun
    begun, _begun = _begun, None
    return begun.end() if begun is not None else None


class recording:
    """Records what happens in a ``with`` block, and merges it into a trace; takes what :func:`start` takes.

    ``report`` is that of the merge, after the block; None if there is no trace, which a line on stderr says. The block's own errors pass::

        with sa_profile.recording("trace.json") as recorded:
            run()
        assert recorded.report.is_clean
    """

    report: MergeReport | None = None

    def __init__(self, output: _Path, *, levels: _Levels = None):
        self._config = _config(output, levels)
        self._begun: _Begun | None = None

    def __enter__(self) -> recording:
        self.report = None
        self._begun = _Begun(self._config)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None:
        begun, self._begun = self._begun, None
        if begun is not None and begun.number:
            self.report = begun.end()


def _config(output: _Path, levels: _Levels) -> ProfileConfig:
    # Absolute: the program may go to another folder before the end.
    return create_profile_config(enabled=True, output=os.path.abspath(output), levels=levels)


def _asking(config: ProfileConfig) -> dict[str, str]:
    """The place and the levels as variables. The run is told there when it has begun."""
    place = config.output.absolute()
    return {OUTPUT if config.output == config.trace_file else DIR: str(place), LEVEL: ",".join(sorted(config.levels))}


def _process_name() -> str:
    """What the drop-in's recorder calls this process, or what it is called where nobody names it."""
    profiler, pid = recorder.installed()
    return _session.default_name() if profiler is None or pid != os.getpid() else profiler.process_name


def _set(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
