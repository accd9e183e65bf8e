"""The recording that profilers share. A process has one recording at a time, even if it has several profilers or copies of the package."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from . import _sa_profile
from .env import DIR, LEVEL, MAIN_PID, OUTPUT, RUN, ProfileConfig, environment, load_profile_config
from ._stderr import say

# The run id that this process put into its environment. An id that somebody else put there groups processes.
_exported_run: str | None = None
# Variables that tell child processes about the run that this process's first event will begin.
announced: dict[str, str] = {}
# Held while a recording starts, and while a profiler that may start one is created, so that only one recording starts.
lock = threading.RLock()


def _after_fork_in_child() -> None:
    global lock
    lock = threading.RLock()  # a thread of the parent may have held the old one


os.register_at_fork(after_in_child=_after_fork_in_child)


def begin(config: ProfileConfig, process_name: str, *, new_run: bool) -> int:
    """Starts recording with this configuration. Returns the number of the recording, or 0 if recording is impossible.

    With ``new_run``, the main process begins a new run, and any other process joins the main process's run. Without it, a recording already under way in the same directory continues,
    or else the run of the last recording there.
    """
    with lock:
        if not new_run and is_under_way(config):
            _sa_profile.set_process_name(process_name)
            return _sa_profile.session()
        number, error = _sa_profile.start_recording(_variables(config, new_run), process_name)
        if error is not None and not is_under_way(config):
            say(error)
            return 0
        _export(config)
        return number


def default_name() -> str:
    """Returns the default name of this process: the one from multiprocessing, or else the name of its script."""
    if not is_main_process():
        return sys.modules["multiprocessing.process"].current_process().name
    return Path(sys.argv[0] if getattr(sys, "argv", None) else "").stem or "python"


def watch() -> None:
    """Makes child processes join the run of this process, whichever process records first, and updates the recorder after forks."""
    global announced
    announced = _sa_profile.announce()
    os.environ.update(announced)
    os.register_at_fork(after_in_child=_sa_profile.after_fork_in_child)


def is_main_process() -> bool:
    """Returns true unless multiprocessing started this process."""
    process = sys.modules.get("multiprocessing.process")
    return process is None or process.parent_process() is None


def begins_runs() -> bool:
    """Returns true if this process is the one that begins new runs."""
    return is_main_process() and environment().get(MAIN_PID, "") in ("", str(os.getpid()))


def is_first_process() -> bool:
    """Returns true if no process has begun a run that this one belongs to. A run that this process announced itself, when the package was imported, does not count."""
    run = announced.get(RUN) if announced.get(MAIN_PID) == str(os.getpid()) else None
    is_announced = run is not None and environment().get(RUN) == run and not _sa_profile.exports()
    return is_main_process() and (is_announced or not environment().get(MAIN_PID))


def export_main_pid() -> None:
    """Tells child processes that this process begins new runs."""
    os.environ[MAIN_PID] = str(os.getpid())


def is_under_way(config: ProfileConfig) -> bool:
    """Returns true if the recording that the configuration asks for is under way in its directory."""
    fragment = _sa_profile.current_fragment()
    if fragment is None or fragment.parent != _absolute(config.fragments_dir):
        return False
    on = _sa_profile.levels()
    return not on or "verbose" in on or config.levels <= on  # no level is on while the run is switched off


def _variables(config: ProfileConfig, new_run: bool) -> dict[str, str]:
    """Returns the variables that the recorder reads in place of the environment."""
    env = {name: value for name, value in environment().items() if name.startswith("SA_PROFILE_")}
    for name in (DIR, OUTPUT):
        env.pop(name, None)
    run, main_pid = env.get(RUN), env.get(MAIN_PID)
    if run == _exported_run and not main_pid:
        env.pop(RUN, None)
    if not new_run and (is_main_process() or main_pid == str(os.getpid())):
        continued = _run_to_continue(config, run, main_pid)
        if continued is not None:
            env[RUN] = continued
            env.pop(MAIN_PID, None)
    return {**env, **_directory_variables(config), LEVEL: ",".join(sorted(config.levels))}


def _run_to_continue(config: ProfileConfig, run: str | None, main_pid: str | None) -> str | None:
    """Returns the id of the run to continue without moving existing files: the last run, if it was in the same directory, or a new run if another process has prepared the directory."""
    last = _sa_profile.exports()
    if last and _last_directory() == _absolute(config.fragments_dir):
        return last[RUN]
    if not last and not run and main_pid == str(os.getpid()):
        return _sa_profile.new_run_id()
    return None


def _last_directory() -> Path | None:
    fragment = _sa_profile.fragment()
    return None if fragment is None else fragment.parent


def _directory_variables(config: ProfileConfig) -> dict[str, str]:
    fragments = _absolute(config.fragments_dir)
    if fragments.name == "fragments":
        return {DIR: str(fragments.parent)}
    if fragments.name.endswith(".json.fragments"):
        return {OUTPUT: str(fragments.with_suffix(""))}
    return {DIR: str(fragments)}  # the fragments are in a folder inside it, where the merge finds them


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))


def _export(config: ProfileConfig) -> None:
    """Sets variables so that child processes find the run from any working directory. The directory itself is exported only if the environment names it; otherwise the caller passes it on."""
    global _exported_run
    exports = _sa_profile.exports()
    if RUN not in exports:
        return
    _exported_run = os.environ[RUN] = exports[RUN]
    if MAIN_PID in exports:
        os.environ[MAIN_PID] = exports[MAIN_PID]
    elif is_main_process():
        os.environ.setdefault(MAIN_PID, str(os.getpid()))
    try:
        named = load_profile_config()
    except ValueError:
        return
    if _absolute(named.fragments_dir) == _absolute(config.fragments_dir):
        for name in (DIR, OUTPUT):
            if environment().get(name) and name in exports:
                os.environ[name] = exports[name]
