"""Paths of the native files in the wheel: the library for ``LD_PRELOAD``, and a library and header for C and C++."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def preload_path() -> Path:
    """Returns the path of the library for ``LD_PRELOAD``, which records an unmodified process's work on its NPUs.

    An example::

        subprocess.run(["./server"], env={**os.environ, "LD_PRELOAD": str(sa_profile.preload_path())})
    """
    return _installed("lib/libsa_profile_preload.so")


def library_path() -> Path:
    """Returns the path of the recorder for C and C++, ``libsa_profile.so``. Link with ``-lsa_profile``, and pass its folder to ``-L`` and ``-Wl,-rpath,``.

    An example::

        folder = sa_profile.library_path().parent
        subprocess.run(["cc", "engine.c", f"-L{folder}", f"-Wl,-rpath,{folder}", "-lsa_profile", f"-I{sa_profile.include_path()}"])
    """
    return _installed("lib/libsa_profile.so")


def include_path() -> Path:
    """Returns the path of the folder with ``sa_profile.h``, for ``-I``.

    An example::

        subprocess.run(["cc", "-c", "engine.c", f"-I{sa_profile.include_path()}"])
    """
    return _installed("include/sa_profile.h").parent


def _installed(place: str) -> Path:
    path = _PACKAGE / place
    if not path.is_file():
        raise FileNotFoundError(
            f"{path}: not found: only an installed package contains it, and this one is a source folder (pip install ./serving-shim/python)"
        )
    return path
