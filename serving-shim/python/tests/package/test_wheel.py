"""The wheel contains what it should and nothing else."""

import os
import platform
import re
import shutil
import subprocess

import pytest

from .conftest import SOURCES

LIBRARIES = {
    "sa_profile/_sa_profile.abi3.so",
    "sa_profile/lib/libsa_profile.so",
    "sa_profile/lib/libsa_profile.so.0",
    "sa_profile/lib/libsa_profile_preload.so",
}
COMMANDS = {"sa-profile", "trace-merge"}


def test_the_package_contains_all_sources_and_native_files(installed):
    sources = (SOURCES / "sa_profile").rglob("*")
    python = {str(path.relative_to(SOURCES)) for path in sources if path.suffix in (".py", ".pyi") or path.name == "py.typed"}
    assert "sa_profile/__init__.py" in python
    of_package = {name for name in installed.files if name.startswith("sa_profile/") and "__pycache__" not in name}
    assert of_package == python | LIBRARIES | {"sa_profile/include/sa_profile.h", "sa_profile/THIRD-PARTY.txt"}
    others = {name for name in installed.files if not name.startswith("sa_profile/") and ".dist-info/" not in name}
    assert {name.rpartition("/")[2] for name in others if "/bin/" in name} == COMMANDS and len(others) == len(COMMANDS)


def test_the_simulator_is_in_no_wheel(installed):
    assert not [name for name in installed.files if re.search(r"ascend|sim|acl", name)]
    # Only the simulator exports this symbol.
    for path in installed.programs().values():
        assert "ascend_sim_marker" not in exported(path)


def test_every_program_is_for_this_machine(installed):
    programs = installed.programs()
    assert programs.keys() == {name.rpartition("/")[2] for name in LIBRARIES} | COMMANDS
    for path in programs.values():
        machine = {"x86_64": 62, "aarch64": 183}[platform.machine()]
        assert int.from_bytes(path.read_bytes()[18:20], "little") == machine, path


def test_all_programs_are_small(installed):
    if (profile := os.environ.get("SA_CARGO_PROFILE")) == "dev":
        pytest.skip(f"SKIPPED the size of the programs: built in the profile {profile}, which users do not install")
    # 26 MiB, because three of them contain the whole merge, and 31 if pip builds it from the sources. With debug information it would be several times that.
    most = 36 << 20 if profile == "source" else 30 << 20
    assert sum(path.stat().st_size for path in installed.programs().values()) < most


def exported(path):
    if shutil.which("nm") is None:
        pytest.skip("SKIPPED exported symbols: no nm")
    listed = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in listed.stdout.splitlines()}


def test_libraries_export_only_their_own_names(installed):
    assert exported(installed.programs()["_sa_profile.abi3.so"]) == {"PyInit__sa_profile"}
    names = exported(installed.programs()["libsa_profile.so"])
    assert "sa_profile_init" in names
    assert not [name for name in names if not name.startswith("sa_profile_")]


def test_one_wheel_works_for_every_python(installed):
    tags = re.findall(r"^Tag: (.*)$", installed.text("WHEEL"), re.MULTILINE)
    assert tags
    for tag in tags:
        assert re.fullmatch(rf"cp310-abi3-(many)?linux.*_{platform.machine()}", tag)
    assert "Root-Is-Purelib: false" in installed.text("WHEEL")


def test_the_description(installed):
    description = installed.distribution.metadata
    assert description["Name"] == "sa-profile"
    assert description["License-Expression"] == "Apache-2.0"
    assert description["Requires-Python"] == ">=3.10"
    assert description.get_all("Requires-Dist") == ['duckdb>=1.1; extra == "sql"']  # required only for the extra
    assert (SOURCES / "README.md").read_text().strip() in description.get_payload()
    assert installed.text("licenses/LICENSE") == (SOURCES / "LICENSE").read_text()


def test_the_licences_of_linked_crates_are_included(installed):
    text = installed.files["sa_profile/THIRD-PARTY.txt"].read_text()
    for crate in ("pyo3", "clap", "zlib-rs", "httparse"):
        assert len(re.findall(rf"^{crate} [0-9.]+: .+$", text, re.MULTILINE)) == 1
    assert "Permission is hereby granted, free of charge" in text
    assert "uPlot 1.6.32, in the pages of" in text and "Leon Sorokin" in text
    # Crates of the tests and benchmarks are not in any program of the wheel.
    assert "fastrace" not in text and "axum" not in text


def test_the_version_is_that_of_the_rust_packages(installed, process):
    version = installed.distribution.version
    for command in sorted(COMMANDS):
        stdout, _ = process.run(command, "--version")
        assert stdout == f"{command} {version}\n"


@pytest.mark.parametrize(("group", "module"), [("vllm.general_plugins", "sa_profile.vllm"), ("sglang.srt.plugins", "sa_profile.sglang")])
def test_engines_find_the_plugin(installed, group, module):
    (point,) = installed.distribution.entry_points.select(group=group)
    assert (point.name, point.value) == ("sa_profile", f"{module}:register")
    assert callable(point.load())
