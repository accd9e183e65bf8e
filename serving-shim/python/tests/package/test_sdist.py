"""The source distribution contains everything that the wheel is built from."""

import json
import shutil
import sys
import tarfile

import pytest

from .conftest import SOURCES

pytest.importorskip("setuptools", reason="SKIPPED the source distribution: no setuptools")


def test_the_workspace_is_complete(process, tmp_path):
    if shutil.which("cargo") is None:
        pytest.skip("SKIPPED the source distribution: no cargo")
    process.folder = SOURCES
    process.run(sys.executable, "setup.py", "-q", "sdist", "-d", str(tmp_path), PYTHONWARNINGS="ignore")
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(tmp_path)
    root = tmp_path / archive.name.removesuffix(".tar.gz")
    assert (root / "LICENSE").read_text() == (SOURCES / "LICENSE").read_text()
    process.folder = root / "workspace"
    stdout, _ = process.run("cargo", "metadata", "--locked", "--no-deps", "--format-version=1")
    packages = {package["name"]: package for package in json.loads(stdout)["packages"]}
    for name in ("sa-profile-python", "sa-profile-preload", "sa-profile-capi", "sa-profile", "trace-merge"):
        assert packages[name]["manifest_path"].startswith(str(root))
