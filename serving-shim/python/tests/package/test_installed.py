"""The paths that the package tells, used as a program would."""

import ctypes
import json
import platform
import shutil
from pathlib import Path

import pytest
import sa_profile

PROGRAM = r"""
#include <sa_profile.h>
int main(void) {
    sa_profile_init();
    sa_profile_span_t step = sa_profile_span_begin(SA_PROFILE_LEVEL_E2E, "worker", "from C");
    sa_profile_span_end(step);
    return 0;
}
"""


def test_the_paths_are_files_of_the_package():
    package = Path(sa_profile.__file__).parent
    assert sa_profile.preload_path() == package / "lib" / "libsa_profile_preload.so"
    assert sa_profile.library_path() == package / "lib" / "libsa_profile.so"
    assert (sa_profile.include_path() / "sa_profile.h").is_file()
    assert ctypes.CDLL(sa_profile.library_path()).sa_profile_init


def test_a_c_program_is_built_against_the_package(process, tmp_path):
    if shutil.which("cc") is None or not process.run("cc", "-dumpmachine")[0].startswith(platform.machine()):
        pytest.skip("SKIPPED a C program against the package: no cc for this machine")
    (tmp_path / "program.c").write_text(PROGRAM)
    folder = sa_profile.library_path().parent
    flags = [f"-I{sa_profile.include_path()}", f"-L{folder}", f"-Wl,-rpath,{folder}", "-lsa_profile"]
    process.run("cc", "program.c", "-o", "program", *flags)
    process.run("./program", SA_PROFILE_DIR="run")
    process.run("trace-merge", "-q", "run")
    events = json.loads((tmp_path / "run" / "trace.json").read_text())["traceEvents"]
    assert [event["cat"] for event in events if event["name"] == "from C"] == ["worker"]


def test_a_package_without_them_says_what_is_missing(process, tmp_path):
    source = Path(sa_profile.__file__).parent
    shutil.copytree(source, tmp_path / "sa_profile", ignore=shutil.ignore_patterns("lib", "include"))
    for function in ("preload_path", "library_path", "include_path"):
        stdout = process.python("-c", f"import sa_profile\ntry: sa_profile.{function}()\nexcept FileNotFoundError as error: print(error)")
        assert stdout.startswith(str(tmp_path / "sa_profile"))
        assert "pip install" in stdout
