"""Describes what the environment asks for and what a process started with it would record. Does not start the recorder."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _sa_profile
from .env import TURN_ON

if TYPE_CHECKING:
    from ._sa_profile import Configuration

Row = tuple[str, str]

_MIB = 1 << 20


def variables() -> list[Row]:
    """Returns each SA_PROFILE_ variable from the start of this process. Importing the package adds further ones for child processes."""
    ours = sorted(entry.partition("=") for entry in _environment() if entry.startswith("SA_PROFILE_"))
    return [(name, repr(value)) for name, _, value in ours] or [("(none)", "no SA_PROFILE_ variable is set")]


def _environment() -> list[str]:
    try:
        return Path("/proc/self/environ").read_bytes().decode(errors="backslashreplace").split("\0")
    except OSError:
        return [f"{name}={value}" for name, value in os.environ.items()]


def recording() -> Iterator[Row]:
    """Yields whether, where and how a process started with these variables would record."""
    found = _sa_profile.configuration()
    if found is None:
        yield "recording", _reason_off()
        return
    directory = Path(found["directory"]).absolute()
    run = _live_run(directory)
    yield "recording", _state(found, directory, run)
    yield "directory", str(directory)
    yield "trace", str(Path(found["trace"]).absolute())
    yield "levels", ", ".join(found["levels"])
    yield "run", _run_description(found, run)
    yield "disk", f"{found['max_bytes'] // _MIB} MiB at most per process; when that is full, it keeps the events that came {found['keep']}"
    for warning in found["warnings"]:
        yield "warning", warning


def _reason_off() -> str:
    if _sa_profile.is_privileged():
        return "off: this program has raised privileges, so its environment is ignored"
    return f"off: none of {', '.join(TURN_ON)} is set"


def _state(found: "Configuration", directory: Path, run: dict[str, Any] | None) -> str:
    if problem := directory_problem(directory):
        return f"off: {problem}"
    if run and _is_stopped(directory, run):
        return "off: the run was switched off, until `sa-profile start`"
    if found["paused"]:
        return "off: SA_PROFILE_START=paused, until `sa-profile start`"
    return "on"


def _run_description(found: "Configuration", run: dict[str, Any] | None) -> str:
    named, main_pid = found["run"], found["main_pid"]
    if named and main_pid is None:
        return f"joins {named}, which SA_PROFILE_RUN names"
    if named and main_pid != os.getpid():  # otherwise it is the run that this process has announced
        return f"joins {named} of process {main_pid} (SA_PROFILE_RUN, SA_PROFILE_MAIN_PID) as long as a process of that run is alive"
    if run:
        return f"joins {run['run']} of process {run['main_pid']}, which is alive"
    return "begins a new one, as its main process"


def _live_run(directory: Path) -> dict[str, Any] | None:
    """Returns the run of this directory if its main process is alive."""
    run = _read(directory / "run")
    if run is None or not {"run", "main_pid", "start_time"} <= run.keys():
        return None
    return run if _start_time(run["main_pid"]) == run["start_time"] else None


def _is_stopped(directory: Path, run: dict[str, Any]) -> bool:
    control = _read(directory / "control")
    return control is not None and control.get("run") == run["run"] and control.get("levels") == []


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _start_time(pid: object) -> int | None:
    """Returns the start time of a process, in clock ticks since boot."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return int(stat.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def directory_problem(directory: Path) -> str | None:
    """Returns the reason why nothing could be written in a run directory, without writing anything there."""
    if directory.exists() and not directory.is_dir():
        return f"{directory} is not a directory"
    nearest = next(path for path in (directory, *directory.parents) if path.exists())
    if not nearest.is_dir():
        return f"{nearest} is not a directory"
    if not os.access(nearest, os.W_OK | os.X_OK):
        return f"{nearest} cannot be written"
    return None
