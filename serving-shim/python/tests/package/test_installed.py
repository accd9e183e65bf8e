"""The paths that the package returns, used like a program would."""

import ctypes
import shutil
from pathlib import Path

import sa_profile


def test_the_paths_are_files_of_the_package():
    package = Path(sa_profile.__file__).parent
    assert sa_profile.preload_path() == package / "lib" / "libsa_profile_preload.so"
    assert sa_profile.library_path() == package / "lib" / "libsa_profile.so"
    assert (sa_profile.include_path() / "sa_profile.h").is_file()
    assert ctypes.CDLL(sa_profile.library_path()).sa_profile_init


def test_a_package_without_them_says_what_is_missing(process, tmp_path):
    source = Path(sa_profile.__file__).parent
    shutil.copytree(source, tmp_path / "sa_profile", ignore=shutil.ignore_patterns("lib", "include"))
    for function in ("preload_path", "library_path", "include_path"):
        stdout = process.python("-c", f"import sa_profile\ntry: sa_profile.{function}()\nexcept FileNotFoundError as error: print(error)")
        assert stdout.startswith(str(tmp_path / "sa_profile"))
        assert "pip install" in stdout
