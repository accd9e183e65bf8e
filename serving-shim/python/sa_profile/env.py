"""Configures what the drop-in profiler records and where, from the environment or from values, by the same rules as pypto-serving's profiler."""

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

# Each of these turns recording on if it is set.
TURN_ON = (DIR, OUTPUT, LEVEL)

LEVELS = ("e2e", "kernel", "verbose")
DEFAULT_LEVELS = frozenset({"e2e", "kernel"})
DEFAULT_OUTPUT = "profile_out"


def environment() -> Mapping[str, str]:
    """Returns the environment, or an empty mapping in a program with raised privileges, whose caller controls the environment."""
    return {} if _sa_profile.is_privileged() else os.environ


def asks_to_record(env: Mapping[str, str] | None = None) -> bool:
    """Returns true if the environment asks for recording, even if recording starts paused."""
    env = environment() if env is None else env
    return any(name in env for name in TURN_ON)


@dataclass(frozen=True)
class ProfileConfig:
    """The settings of a recording: whether it is enabled, its levels and its files."""

    enabled: bool
    output: Path
    trace_file: Path
    fragments_dir: Path
    levels: frozenset[str]

    def includes(self, level: str) -> bool:
        """Returns true if events of this level are recorded. ``verbose`` includes all levels."""
        return "verbose" in self.levels or level in self.levels


def load_profile_config(env: Mapping[str, str] | None = None) -> ProfileConfig:
    """Reads the configuration from environment variables, by default those of this process.

    ``SA_PROFILE_OUTPUT`` (a directory, or a path that ends in .json) and ``SA_PROFILE_LEVEL`` turn recording on if they are set, even to an empty text. ``SA_PROFILE_DIR`` does so
    if it is not empty: it names a directory and takes precedence over ``SA_PROFILE_OUTPUT``. An unknown level raises a ValueError.
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
    """Creates a configuration without reading the environment. ``levels`` is a comma-separated text or an iterable of levels. An unknown level raises a ValueError.

    ``output`` is a directory, or the path of the trace if it ends in .json. The default is ``profile_out``::

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
    except RuntimeError:  # there is no such user, or the user has no home
        return path


def _levels(text: str, name: str = LEVEL) -> frozenset[str]:
    parts = [part.strip().lower() for part in text.split(",")]
    levels = frozenset(part for part in parts if part)
    unknown = sorted(levels.difference(LEVELS))
    if unknown:
        raise ValueError(f"{name}: unknown level {', '.join(map(repr, unknown))}, expected {', '.join(LEVELS)}")
    if "verbose" in levels:
        return frozenset(LEVELS)  # like pypto-serving's profiler, where verbose includes all levels
    return levels or DEFAULT_LEVELS
