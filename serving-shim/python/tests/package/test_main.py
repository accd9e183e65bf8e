"""``python -m sa_profile`` describes what a process started in its place would do, and creates no files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import sa_profile

RECORDS = "import sa_profile, sys\nwith sa_profile.span('x'): print(sa_profile.run(), flush=True); sys.stdin.read()"


@pytest.fixture
def rows(process, tmp_path):
    """Returns a function that runs it, checks that it creates no file, and returns what it printed, by name."""

    def run(module="sa_profile", **variables):
        before = sorted(tmp_path.rglob("*"))
        stdout = process.python("-B", "-m", module, **variables)
        assert sorted(tmp_path.rglob("*")) == before
        return {line[:22].strip(): line[22:].strip() for line in stdout.splitlines() if line.startswith("  ")}

    return run


@pytest.fixture
def live_run(process, tmp_path):
    """Starts a main process that records, and yields its run and pid."""
    environment = process.environment({"SA_PROFILE_DIR": "out", "SA_PROFILE_THREADS": "1"})  # the thread obeys `sa-profile stop` although the program waits
    words = [sys.executable, "-c", RECORDS]
    with subprocess.Popen(words, cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as main:
        yield main.stdout.readline().strip(), main.pid
        main.stdin.close()
        assert main.wait(60) == 0


def test_it_explains_the_variables(rows, tmp_path):
    found = rows(SA_PROFILE_DIR="out", SA_PROFILE_LEVEL="kernel,none", SA_PROFILE_MAX_MB="64", SA_PROFILE_KEEP="first")
    assert found["recording"] == "on"
    assert found["directory"] == str(tmp_path / "out")
    assert found["trace"] == str(tmp_path / "out" / "trace.json")
    assert found["levels"] == "kernel"
    assert found["run"] == "begins a new one, as its main process"
    assert found["disk"].startswith("64 MiB") and found["disk"].endswith("first")
    assert 'unknown level "none"' in found["warning"]
    assert found["SA_PROFILE_MAX_MB"] == "'64'"
    assert "SA_PROFILE_RUN" not in found  # the package has set it


def test_the_older_variable_names_a_trace(rows, tmp_path):
    found = rows(SA_PROFILE_OUTPUT="all.json")
    assert (found["directory"], found["trace"]) == (str(tmp_path / "all.json.fragments"), str(tmp_path / "all.json"))


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"SA_PROFILE_DIR": "out", "SA_PROFILE_START": "paused"}, "SA_PROFILE_START=paused"),
        ({"SA_PROFILE_DIR": "/dev/null"}, "is not a directory"),
        ({"SA_PROFILE_DIR": "/proc/out"}, "cannot be written"),
    ],
)
def test_it_says_why_nothing_would_be_recorded(rows, variables, why):
    if variables["SA_PROFILE_DIR"] == "/proc/out" and os.access("/proc", os.W_OK):
        pytest.skip("SKIPPED a folder that cannot be written: root may write everywhere")
    found = rows(**variables)
    assert found["recording"].startswith("off: ") and why in found["recording"]


def test_it_knows_the_run_it_would_join_and_that_it_was_switched_off(rows, live_run, process):
    run, pid = live_run
    found = rows(SA_PROFILE_DIR="out")
    assert found["run"] == f"joins {run} of process {pid}, which is alive"
    assert found["recording"] == "on"
    assert rows(SA_PROFILE_DIR="out", SA_PROFILE_RUN="job-7")["run"] == "joins job-7, which SA_PROFILE_RUN names"
    process.run("sa-profile", "stop", "out")
    assert rows(SA_PROFILE_DIR="out")["recording"] == "off: the run was switched off, until `sa-profile start`"


def test_a_run_that_is_over_is_not_joined(rows, process):
    process.run(sys.executable, "-c", "import sa_profile\nwith sa_profile.span('x'): pass", SA_PROFILE_DIR="out")
    assert rows(SA_PROFILE_DIR="out")["run"] == "begins a new one, as its main process"


def test_the_parts_where_no_variable_is_set(rows, installed):
    found = rows()
    package, preload = Path(sa_profile.__file__).parent, sa_profile.preload_path()
    assert found["recording"] == "off: none of SA_PROFILE_DIR, SA_PROFILE_OUTPUT, SA_PROFILE_LEVEL is set"
    assert "directory" not in found and "no SA_PROFILE_ variable" in found["(none)"]
    assert found["package"] == f"{installed.distribution.version}, {package}"
    assert found["extension"] == f"loaded, {package / '_sa_profile.abi3.so'}"
    assert found["preload library"].startswith("not in this process") and str(preload) in found["preload library"]
    assert found["vLLM plugin"].startswith("installed") and found["SGLang plugin"].startswith("installed")
    assert found["drop-in"].startswith("not in place")
    assert rows(LD_PRELOAD=str(preload))["preload library"] == f"in this process, {preload}"


@pytest.mark.parametrize("engine", ["vLLM", "SGLang"])
def test_whether_an_engine_would_load_the_plugin(rows, tmp_path, engine):
    package = engine.lower()
    group = {"vLLM": "vllm.general_plugins", "SGLang": "sglang.srt.plugins"}[engine]
    for name, version in [("sa_profile", "0.1.0"), (package, "9.9")]:
        folder = tmp_path / "site" / f"{name}-{version}.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    (tmp_path / "site" / "sa_profile-0.1.0.dist-info" / "entry_points.txt").write_text(f"[{group}]\nsa_profile = sa_profile.{package}:register\n")

    def found(**variables):
        return rows(PYTHONPATH=str(tmp_path / "site"), **variables)[f"{engine} plugin"]

    assert found() == f"installed, not active: recording is off; {engine} 9.9"
    assert found(SA_PROFILE_DIR="out") == f"active in the processes of {engine} 9.9"
    variable = f"{engine.upper()}_PLUGINS"
    assert found(SA_PROFILE_DIR="out", **{variable: "other, sa_profile"}) == f"active in the processes of {engine} 9.9"
    assert found(SA_PROFILE_DIR="out", **{variable: "other"}) == f"installed, not active: {variable}=other leaves it out"


@pytest.mark.parametrize(
    ("choice", "runtime"),
    [("off", "none: "), ("sim", "sim: "), ("mspti, Sim", "sim: "), ("off,sim", "sim: "), ("", "ascend: {library}"), ("mspti", "ascend: {library}")],
)
def test_the_chosen_or_detected_device_runtime(rows, tmp_path, choice, runtime):
    library = tmp_path / "toolkit" / "lib64" / "libascendcl.so"
    library.parent.mkdir(parents=True)
    library.touch()
    found = rows(ASCEND_HOME_PATH=str(tmp_path / "toolkit"), SA_PROFILE_DEVICE=choice)
    assert found["device runtime"].startswith(runtime.format(library=library))


def test_the_drop_in_is_found_under_its_name(rows, tmp_path):
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / "profile").symlink_to(Path(sa_profile.__file__).parent)
    for module in ("sa_profile", "python.profile"):
        assert rows(module)["drop-in"] == f"in place, {tmp_path / 'python' / 'profile'}"
