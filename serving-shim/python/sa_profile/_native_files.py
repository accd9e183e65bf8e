"""What the wheel brings besides Python: the library for ``LD_PRELOAD``, and library and header for C and C++."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def preload_path() -> Path:
    """The library for ``LD_PRELOAD``, which records what an unmodified process asks of its NPUs.

    An example::

        subprocess.run(["./server"], env={**os.environ, "LD_PRELOAD": str(sa_profile.preload_path())})
    """
    return _installed("lib/libsa_profile_preload.so")


def library_path() -> Path:
    """The recorder for C and C++, ``libsa_profile.so``: link with ``-L`` and ``-Wl,-rpath,`` of its folder, and ``-lsa_profile``.

    An example::

        folder = sa_profile.library_path().parent
        subprocess.run(["cc", "engine.c", f"-L{folder}", f"-Wl,-rpath,{folder}", "-lsa_profile", f"-I{sa_profile.include_path()}"])
    """
    return _installed("lib/libsa_profile.so")


def include_path() -> Path:
    """The folder with ``sa_profile.h``, for ``-I``.

    An example::

        subprocess.run(["cc", "-c", "engine.c", f"-I{sa_profile.include_path()}"])
    """
    return _installed("include/sa_profile.h").parent


def _installed(place: str) -> Path:
    path = _PACKAGE / place
    if not path.is_file():
        raise FileNotFoundError(
            f"{path}: not there: only the installed package has it, and this one is a folder of sources (pip install ./serving-shim/python)"
        )
    return path
