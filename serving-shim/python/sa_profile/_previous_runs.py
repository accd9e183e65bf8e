"""Moves the fragments of earlier runs to ``previous/``, so that a new run deletes nothing that was recorded."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

_SEGMENT = re.compile(r"(trace\..+?)(\.s\d+)?\.jsonl")


def move_to_previous(fragments_dir: Path) -> None:
    """Moves ``trace.*.jsonl`` and their rings, except for those of live processes. Touches nothing else. Files that cannot be moved stay in place."""
    try:
        fragments_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        fragments = sorted(fragments_dir.glob("trace.*.jsonl"))
    except OSError:
        return  # the recorder will report what is wrong with the directory
    live = {_stem(path) for path in fragments if _is_owned(path)}
    for path in fragments:
        if _stem(path) not in live:
            _move(path, _previous(fragments_dir) / _run(path))


def _previous(fragments_dir: Path) -> Path:
    run_directory = fragments_dir.parent if fragments_dir.name == "fragments" else fragments_dir
    return run_directory / "previous"


def _stem(path: Path) -> str:
    """Returns the part of the name that a fragment's segments and its ring share."""
    match = _SEGMENT.fullmatch(path.name)
    return match[1] if match else path.name


def _is_owned(path: Path) -> bool:
    """Returns true if a recorder holds the fragment's lock."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return True  # a link, or another user's file: leave it alone
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


def _run(path: Path) -> str:
    """Returns the run id in the fragment's first line, or ``unknown``."""
    try:
        with open(path, "rb") as file:
            header = json.loads(file.readline(65536))
        run = header["args"]["run"] if header["name"] == "sa_fragment" else ""
    except (OSError, ValueError, KeyError, TypeError):
        return "unknown"
    is_plain = isinstance(run, str) and re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", run)
    return run if is_plain else "unknown"


def _move(path: Path, target: Path) -> None:
    """Moves a fragment and its ring. It uses descriptors of the folders, so a link that replaces a folder meanwhile is not followed."""
    names = [f"{_stem(path)}.ring", path.name]  # the ring first: a ring without a fragment would look as if somebody had removed the fragment
    try:
        with ExitStack() as opened:
            folder = opened.enter_context(_folder(os.fspath(target.parent.parent)))
            previous = opened.enter_context(_folder(target.parent.name, parent=folder))
            run = opened.enter_context(_folder(target.name, parent=previous))
            fragments = opened.enter_context(_folder(os.fspath(path.parent)))
            for name in names:
                if _is_file(name, fragments):
                    os.rename(name, _unused_name(run, name), src_dir_fd=fragments, dst_dir_fd=run)
    except OSError:
        pass  # the file stays in place, and the trace includes it


@contextmanager
def _folder(name: str, parent: int | None = None) -> Iterator[int]:
    """Opens a folder and yields its descriptor. A folder that may have to be created is refused if it is a link or belongs to another user."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    if parent is not None:
        with suppress(FileExistsError):
            os.mkdir(name, mode=0o700, dir_fd=parent)
        flags |= os.O_NOFOLLOW
    descriptor = os.open(name, flags, dir_fd=parent)
    try:
        if parent is not None and os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), name)
        yield descriptor
    finally:
        os.close(descriptor)


def _is_file(name: str, folder: int) -> bool:
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _unused_name(folder: int, name: str) -> str:
    """Returns the name, or a similar one that does not exist in the folder."""
    stem, _, kind = name.rpartition(".")
    unused, number = name, 1
    while _exists(folder, unused):
        unused, number = f"{stem}.{number}.{kind}", number + 1
    return unused


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
