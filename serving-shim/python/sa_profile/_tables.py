"""The tables of a run as Parquet, for pandas, polars and other readers. The command ``sa-profile tables`` writes them."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping

from . import _sa_profile

# `shutil`, `subprocess` and `tempfile` are imported where they are used: every process of a server imports this package, and would pay some 10 ms.

_Path = str | os.PathLike[str]

_COMMAND = "sa-profile"
_WHEEL = "a wheel that serving-shim/python/build-wheels.sh made: pip install sa_profile-*.whl"
# Part of what `sa-profile tables` says in a build without Parquet.
_NO_PARQUET = "cannot write Parquet"


class Tables(Mapping[str, str]):
    """The tables of a run: a read-only mapping from the name of a table to its path, the folder with its Parquet files.

    ``pandas.read_parquet`` and ``polars.scan_parquet`` read such a folder as one table, with the host as the column ``host``.

    A temporary folder is removed when the program no longer refers to this object or to any of its paths, or when the process ends.
    """

    #: The folder that contains the tables.
    folder: str
    #: The lines that the command printed, such as the size of the tables.
    text: str

    def __init__(self, folder: _Folder, text: str):
        self.folder = _KeepingPath.within(folder)
        self.text = text
        self._paths = {name: _KeepingPath.within(folder, name) for name in _table_names(folder.path)}

    def __getitem__(self, name: str) -> str:
        try:
            return self._paths[name]
        except KeyError:
            raise KeyError(f"{name}: expected one of {', '.join(self._paths)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __repr__(self) -> str:
        return f"<Tables in {self.folder}: {', '.join(self._paths)}>"


def tables(run: _Path | None = None, *, to: _Path | None = None, force: bool = False) -> Tables:
    """Writes the tables of a run as Parquet and returns their paths. Runs the command ``sa-profile tables``; other threads go on meanwhile.

    Arguments:
        run: a run directory, a fragment or a trace, which may still be growing. By default the newest run in ``SA_PROFILE_DIR``, or else in ``profile_out``.
        to: the folder for the tables, which is created if it does not exist. By default a temporary folder, which exists as long as the returned object.
        force: replace tables of the same host that are already in the folder.

    The tables include what this process has recorded so far. An OSError says why they could not be written: there is no run, the command is not installed, or it was built without
    Parquet::

        tables = sa_profile.tables("profile_out")
        requests = pandas.read_parquet(tables["request"])
        slices = polars.scan_parquet(tables["slice"])
    """
    program = _program()
    _sa_profile.flush()
    folder = _Folder(to)
    options = ["--force"] if force else []
    inputs = [] if run is None else ["--", os.fspath(run)]
    try:
        text = _run([program, "tables", "--to", folder.path, *options, *inputs])
        return Tables(folder, text)
    except BaseException:
        folder.remove()
        raise


class _Folder:
    """The folder of the tables. A temporary one is removed when no object refers to this one."""

    def __init__(self, to: _Path | None):
        self._finalizer: weakref.finalize[[str, int, Callable[..., None]], _Folder] | None = None
        if to is not None:
            self.path = os.path.abspath(to)  # the program may change its working directory
            return
        import shutil
        import tempfile

        self.path = tempfile.mkdtemp(prefix="sa-profile-tables-")
        # `tempfile.TemporaryDirectory` would warn when it is collected, and a forked child would remove the folder of its parent.
        self._finalizer = weakref.finalize(self, _remove, self.path, os.getpid(), shutil.rmtree)

    def remove(self) -> None:
        """Removes the folder now if it is a temporary one."""
        if self._finalizer is not None:
            self._finalizer()


def _remove(path: str, owner: int, remove_tree: Callable[..., None]) -> None:
    """Removes a folder, unless this process is a fork of its owner."""
    if os.getpid() == owner:
        remove_tree(path, ignore_errors=True)


class _KeepingPath(str):
    """A path that keeps a temporary folder alive: in ``read_parquet(tables()["request"])`` nothing else refers to the folder."""

    _folder: _Folder

    @classmethod
    def within(cls, folder: _Folder, *names: str) -> _KeepingPath:
        """Returns the path of this folder, or of what it contains under this name."""
        path = cls(os.path.join(folder.path, *names))
        path._folder = folder
        return path

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Reduces it to a plain text: another process does not own the folder."""
        return str, (str(self),)


def _table_names(folder: str) -> list[str]:
    """Returns the sorted names of the tables in a folder. Each table is a folder with a part for each host."""
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir() and _is_table(entry.path))


def _is_table(folder: str) -> bool:
    # Tables that are still being written are in a folder whose name begins with a dot.
    return not os.path.basename(folder).startswith(".") and any(name.startswith("host=") for name in os.listdir(folder))


def _program() -> str:
    """Returns the path of the command: next to the interpreter, where the wheel installs it, or else on PATH."""
    import shutil

    installed = shutil.which(_COMMAND, path=os.path.dirname(sys.executable)) if sys.executable else None
    found = installed or shutil.which(_COMMAND)
    if found is None:
        place = f"next to {sys.executable} or on PATH" if sys.executable else "on PATH"
        raise FileNotFoundError(f"{_COMMAND}: expected this command {place}, found none; install {_WHEEL}")
    return found


def _run(command: list[str]) -> str:
    """Runs the command and returns what it printed."""
    import shlex
    import subprocess

    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    printed = done.stdout.strip()
    if _NO_PARQUET in printed and done.returncode != 0:
        raise OSError(f"{command[0]}: expected a build that can write Parquet, found one that cannot; install {_WHEEL}")
    if done.returncode != 0:
        raise OSError(f"{shlex.join(command)}: expected exit code 0, found {done.returncode}: {printed}")
    return printed
