"""The programs of four pages, in four languages, draw one flow: their events have the same name, category and id."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from .conftest import SOURCES

ROOT = SOURCES.parents[1]
TPQ = ROOT / "tests" / "perfetto" / "tpq"
PAGES = {
    "rust": ROOT / "docs" / "rust.md",
    "cpp": ROOT / "docs" / "cpp.md",
    "c": SOURCES.parent / "capi" / "README.md",
    "python": ROOT / "docs" / "python.md",
}
RUST_CRATE = """
[package]
name = "engine"
version = "0.0.0"
edition = "2024"

[dependencies]
sa-recorder = {{ path = "{recorder}" }}

[workspace]
"""
# The page has the function of an engine's loop; this is the loop.
USE_OF_THE_PYTHON_PAGE = """
import types
sa_profile.set_process_name("python")
run_step([types.SimpleNamespace(id="cmpl-0")])
"""
ARROWS = """
SELECT DISTINCT pi.name FROM flow f
JOIN slice si ON si.id = f.slice_in JOIN thread_track ti ON ti.id = si.track_id JOIN thread USING (utid) JOIN process pi USING (upid)
WHERE f.trace_id = (SELECT f.trace_id FROM flow f JOIN slice so ON so.id = f.slice_out
  WHERE so.name = 'add_request' AND EXTRACT_ARG(so.arg_set_id, 'args.request_id') = 'cmpl-0')
"""
ERRORS = "SELECT name, value FROM stats WHERE value > 0 AND severity IN ('error', 'data_loss')"


def code_of(page, language):
    """Returns the first block of code in this language."""
    return re.search(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)[1]


def build_rust(process, tmp_path):
    crate = tmp_path / "engine"
    (crate / "src").mkdir(parents=True)
    (crate / "Cargo.toml").write_text(RUST_CRATE.format(recorder=ROOT / "recorder"))
    shutil.copy(ROOT / "Cargo.lock", crate)
    (crate / "src" / "main.rs").write_text(code_of(PAGES["rust"], "rust"))
    process.run("cargo", "build", "--quiet", "--offline", "--manifest-path", crate / "Cargo.toml", "--target-dir", tmp_path / "target")
    return tmp_path / "target" / "debug" / "engine"


def build_c(process, tmp_path, language, compiler):
    lines = "import sa_profile; print(sa_profile.library_path().parent, sa_profile.include_path())"
    library, include = process.python("-c", lines).split()
    source, program = tmp_path / f"program.{language}", tmp_path / f"program-{language}"
    source.write_text(code_of(PAGES[language], language))
    process.run(*compiler, source, "-pthread", f"-L{library}", f"-Wl,-rpath,{library}", "-lsa_profile", f"-I{include}", "-o", program)
    return program


@pytest.mark.skipif(not PAGES["rust"].exists(), reason="SKIPPED the programs of four pages: the pages are not beside the package")
def test_the_flows_of_four_pages_meet(process, tmp_path):
    missing = [tool for tool in ("cargo", "cc", "c++") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"SKIPPED the programs of four pages: no {', '.join(missing)}")
    (tmp_path / "program.py").write_text(code_of(PAGES["python"], "python") + USE_OF_THE_PYTHON_PAGE)
    programs = [
        build_rust(process, tmp_path),
        build_c(process, tmp_path, "cpp", ["c++", "-std=c++11"]),
        build_c(process, tmp_path, "c", ["cc", "-std=c11", "-x", "c"]),
    ]
    commands = [*map(str, programs), f"{sys.executable} program.py"]
    process.run("sa-profile", "run", "--", "sh", "-ec", "; ".join(commands))
    (trace,) = tmp_path.glob("profile_out/*/trace.json")
    events = json.loads(trace.read_text())["traceEvents"]
    flows = [event for event in events if event["ph"] in "stf"]
    assert {(flow["name"], flow["cat"]) for flow in flows} == {("request", "flow")}
    done = subprocess.run([TPQ, trace, ERRORS, ARROWS], capture_output=True, text=True, timeout=120)
    if done.returncode == 3:
        pytest.skip(f"SKIPPED the programs of four pages in Perfetto: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    errors, processes = map(json.loads, done.stdout.splitlines())
    assert errors == []
    names = {row[0].split(" ")[0] for row in processes}
    assert names == {"engine", "runtime", "engine-core", "python"}, processes
