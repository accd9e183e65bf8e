"""What the drop-in profiler shall record and where: from the environment or from values, as pypto-serving's profiler reads them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from . import _sa_profile

DIR = "SA_PROFILE_DIR"
OUTPUT = "SA_PROFILE_OUTPUT"
LEVEL = "SA_PROFILE_LEVEL"
START = "SA_PROFILE_START"
RUN = "SA_PROFILE_RUN"
MAIN_PID = "SA_PROFILE_MAIN_PID"

# One of them turns recording on by being there.
TURN_ON = (DIR, OUTPUT, LEVEL)

LEVELS = ("e2e", "kernel", "verbose")
DEFAULT_LEVELS = frozenset({"e2e", "kernel"})
DEFAULT_OUTPUT = "profile_out"


def environment() -> Mapping[str, str]:
    """The environment, as far as it may decide anything: in a program with raised privileges it is the caller's, and nothing in it counts."""
    return {} if _sa_profile.is_privileged() else os.environ


def asks_to_record(env: Mapping[str, str] | None = None) -> bool:
    """Whether the environment asks for recording, also for one that begins paused."""
    env = environment() if env is None else env
    return any(name in env for name in TURN_ON)


@dataclass(frozen=True)
class ProfileConfig:
    """Whether to record, what, and into which files."""

    enabled: bool
    output: Path
    trace_file: Path
    fragments_dir: Path
    levels: frozenset[str]

    def includes(self, level: str) -> bool:
        """Whether events of a level are asked for; ``verbose`` asks for all of them."""
        return "verbose" in self.levels or level in self.levels


def load_profile_config(env: Mapping[str, str] | None = None) -> ProfileConfig:
    """Reads the variables, by default those of the process.

    ``SA_PROFILE_OUTPUT`` (a directory, or a path with the suffix .json) and ``SA_PROFILE_LEVEL`` turn recording on by being there, empty or not; so does ``SA_PROFILE_DIR``,
    which names a directory and goes before ``SA_PROFILE_OUTPUT``. A level that there is not is a ValueError.
    """
    env = environment() if env is None else env
    directory = env.get(DIR, "").strip()
    enabled = bool(directory) or OUTPUT in env or LEVEL in env
    levels = _levels(env.get(LEVEL, ""))
    if directory:
        return _in_directory(enabled, _path(directory), levels)
    return _config(enabled, _path(env.get(OUTPUT, "").strip() or DEFAULT_OUTPUT), levels)


def create_profile_config(
    *,
    enabled: bool,
    output: str | os.PathLike[str] | None = None,
    levels: str | Iterable[str] | None = None,
) -> ProfileConfig:
    """Makes a configuration without looking at the environment. ``levels`` is a comma list or the levels themselves; a level that there is not is a ValueError.

    ``output`` is a directory, or the path of the trace if its suffix is .json; ``profile_out`` by default::

        config = create_profile_config(enabled=True, output="profile_out", levels="e2e,kernel")
    """
    output = DEFAULT_OUTPUT if output is None or not os.fspath(output) else output
    text = levels if isinstance(levels, str) else ",".join(levels or ())
    return _config(bool(enabled), _path(output), _levels(text, "levels"))


def _config(enabled: bool, output: Path, levels: frozenset[str]) -> ProfileConfig:
    if output.suffix != ".json":
        return _in_directory(enabled, output, levels)
    fragments_dir = output.with_name(f"{output.name}.fragments")
    return ProfileConfig(enabled, output, output, fragments_dir, levels)


def _in_directory(enabled: bool, output: Path, levels: frozenset[str]) -> ProfileConfig:
    return ProfileConfig(enabled, output, output / "trace.json", output / "fragments", levels)


def _path(text: str | os.PathLike[str]) -> Path:
    path = Path(text)
    try:
        return path.expanduser()
    except RuntimeError:  # a user that there is not, or one without a home
        return path


def _levels(text: str, name: str = LEVEL) -> frozenset[str]:
    words = [word.strip().lower() for word in text.split(",")]
    levels = frozenset(word for word in words if word)
    unknown = sorted(levels.difference(LEVELS))
    if unknown:
        raise ValueError(f"{name}: unknown level {', '.join(map(repr, unknown))}, expected {', '.join(LEVELS)}")
    if "verbose" in levels:
        return frozenset(LEVELS)  # as pypto-serving's profiler has it: verbose asks for all of them
    return levels or DEFAULT_LEVELS
