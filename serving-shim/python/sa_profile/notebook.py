"""Recording that a notebook, a test or a script begins and ends itself, whatever the environment asks for."""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import TracebackType

from . import session
from .env import DEFAULT_OUTPUT, DIR, LEVEL, MAIN_PID, OUTPUT, RUN, START, ProfileConfig, create_profile_config
from .merge_report import MergeReport, report_of
from .stderr import say

_Path = str | os.PathLike[str]
_Levels = str | Iterable[str] | None


class _Begun:
    """A recording that was begun here, and the variables that it has replaced."""

    def __init__(self, config: ProfileConfig):
        self.config = config
        self.variables = _Variables(config)
        self.number = session.begin(config, session.default_name(), anew=True)
        if not self.number:
            self.variables.put_back()

    def end(self) -> MergeReport | None:
        """Ends it, unless something else has, and merges what it recorded. Nothing if there is no trace, which is said."""
        self.variables.put_back()
        if self.number == session.current():
            session.end()
        try:
            return report_of([os.fspath(self.config.fragments_dir)], self.config.trace_file)
        except OSError as error:
            say(error)  # the fragments are there, and the program goes on
            return None


class _Variables:
    """The place and the levels of a recording in the environment, so that child processes record there too. The run is told there when it has begun."""

    def __init__(self, config: ProfileConfig):
        place = config.output.absolute()
        mine = {OUTPUT if config.output == config.trace_file else DIR: str(place), LEVEL: ",".join(sorted(config.levels))}
        names = (DIR, OUTPUT, LEVEL, START, RUN, MAIN_PID)
        self._before = {name: os.environ.get(name) for name in names}
        _set(dict.fromkeys(names) | mine)

    def put_back(self) -> None:
        _set(self._before)


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
    _begun = begun if begun.number else None
    return _begun is not None


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
        if self._begun is not None and self._begun.number:
            self.report = self._begun.end()


def _config(output: _Path, levels: _Levels) -> ProfileConfig:
    # Absolute: the program may go to another folder before the end.
    return create_profile_config(enabled=True, output=os.path.abspath(output), levels=levels)


def _set(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
