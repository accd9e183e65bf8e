"""Puts the fragments of earlier runs aside into ``previous/``: nothing that was recorded is deleted by the next run."""

from __future__ import annotations

import fcntl
import json
import os
import re
from pathlib import Path

_SEGMENT = re.compile(r"(trace\..+?)(\.s\d+)?\.jsonl")


def put_aside(fragments_dir: Path) -> None:
    """Moves ``trace.*.jsonl`` and their rings, but for those that a live process writes; nothing else is touched. What cannot be moved stays."""
    try:
        fragments_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        fragments = sorted(fragments_dir.glob("trace.*.jsonl"))
    except OSError:
        return  # the recorder says what is wrong with the directory
    live = {_stem(path) for path in fragments if _is_owned(path)}
    for path in fragments:
        if _stem(path) not in live:
            _move(path, _previous(fragments_dir) / _run(path))


def _previous(fragments_dir: Path) -> Path:
    run_directory = fragments_dir.parent if fragments_dir.name == "fragments" else fragments_dir
    return run_directory / "previous"


def _stem(path: Path) -> str:
    """The name that the segments of a fragment and its ring share."""
    match = _SEGMENT.fullmatch(path.name)
    return match[1] if match else path.name


def _is_owned(path: Path) -> bool:
    """Whether a recorder holds the fragment's lock."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return True  # a link, or another user's: not ours to touch
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


def _run(path: Path) -> str:
    """The run id in the fragment's first line."""
    try:
        with open(path, "rb") as file:
            header = json.loads(file.readline(65536))
        run = header["args"]["run"] if header["name"] == "sa_fragment" else ""
    except (OSError, ValueError, KeyError, TypeError):
        return "unknown"
    is_plain = isinstance(run, str) and re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", run)
    return run if is_plain else "unknown"


def _move(path: Path, target: Path) -> None:
    ring = path.with_name(f"{_stem(path)}.ring")
    try:
        previous = target.parent
        previous.mkdir(mode=0o700, exist_ok=True)
        if previous.is_symlink() or target.is_symlink() or previous.stat().st_uid != os.geteuid():
            return  # another user's folder, or a way to one
        target.mkdir(mode=0o700, exist_ok=True)
        # The ring first: one that is left alone looks like that of a fragment somebody removed.
        if ring.is_file():
            ring.rename(_free(target, ring.name))
        path.rename(_free(target, path.name))
    except OSError:
        pass  # it stays, and the trace has it


def _free(target: Path, name: str) -> Path:
    """A path for the name that nothing has."""
    stem, _, kind = name.rpartition(".")
    path, number = target / name, 1
    while path.exists():
        path, number = target / f"{stem}.{number}.{kind}", number + 1
    return path
