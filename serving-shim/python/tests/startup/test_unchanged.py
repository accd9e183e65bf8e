"""Programs can see nothing of the hook except its folder in PYTHONPATH, and modules that are built into Python."""

import shutil
import subprocess
import sys

import pytest

import sa_profile

from .conftest import STARTUP

SEEN = """
import os, sys, warnings, gc, threading, signal
print(sys.path, sys.argv, sys.flags, sys.orig_argv[1:], __name__, __file__)
print("sitecustomize" in sys.modules, "sa_profile" in sys.modules, os.environ.get("PYTHONPATH"), warnings.filters)
print(gc.get_threshold(), gc.isenabled(), [thread.name for thread in threading.enumerate()], sys.gettrace(), sys.getprofile(), signal.getsignal(signal.SIGINT))
import atexit
print(sorted(name for name in sys.modules if not name.startswith("sa_profile")), [str(type(finder)) for finder in sys.meta_path])
"""


@pytest.mark.parametrize("before", [[], ["-X", "dev"], ["-W", "error"], ["-s"], ["-B", "-u"]])
def test_the_program_sees_the_same_as_without_the_hook(script, before):
    plain = script(SEEN)
    without = plain.run("a", "b", sampled=False, before=before)
    done = plain.run("a", "b", before=before)
    assert done.returncode == without.returncode == 0, done.stderr
    own = plain.environment()["PYTHONPATH"]
    expected = without.stdout.replace(" None [", f" {own} [").replace(" None\n", f" {own}\n")
    assert done.stdout.replace("'encodings.ascii', ", "") == expected.replace("'encodings.ascii', ", "")  # imported by the checks of -X dev
    assert done.stderr == without.stderr


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_a_python_that_ignores_variables_is_not_sampled(script, option):
    plain = script("print('ran')")
    done = plain.run(before=[option])
    assert (done.stdout, done.stderr, plain.processes()) == ("ran\n", "", {})


def test_a_safe_path_is_sampled(script):
    plain = script("import time\ntime.sleep(0.1)")
    assert plain.sampled(PYTHONSAFEPATH="1").ms("MainThread", "<module> __main__") > 50


@pytest.mark.parametrize(
    ("text", "stdout"),
    [("print('own')\nvalue = 3\n", "own\n3\n"), ("print('own')\nraise ValueError('of the user')\n", "own\nNone\n")],
)
def test_the_users_own_sitecustomize_runs(script, tmp_path, text, stdout):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text(text)
    plain = script("import sys\nprint(getattr(sys.modules.get('sitecustomize'), 'value', None))\n")
    without, done = plain.run(sampled=False, PYTHONPATH=str(own)), plain.run(PYTHONPATH=str(own))
    assert (done.stdout, done.stderr, done.returncode) == (stdout, without.stderr, without.returncode)
    assert without.stdout == stdout
    assert "plain.py" in plain.processes()


def test_nothing_happens_unless_recording_is_requested(script):
    plain = script("print('ran')")
    environment = plain.environment()
    del environment["SA_PROFILE_DIR"], environment["SA_PROFILE_RUN"]
    done = subprocess.run([sys.executable, str(plain.path)], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("ran\n", "")


def test_an_unwritable_directory_is_reported_in_one_line(script, tmp_path):
    plain = script("print('ran')")
    (tmp_path / "file").write_text("")
    done = plain.run(SA_PROFILE_DIR=str(tmp_path / "file"))
    assert done.stdout == "ran\n" and done.stderr.count("\n") == 1 and done.returncode == 0


@pytest.mark.parametrize("text", ["x", "-1", "0.5", "1e9", "nan"])
def test_an_invalid_interval_is_reported_in_one_line(script, text):
    done = script("print('ran')").run(SA_PROFILE_SAMPLE_MS=text)
    assert done.stdout == "ran\n"
    assert done.stderr == f"sa_profile: SA_PROFILE_SAMPLE_MS: expected 0, or ms from 1 to 60000, found '{text}': using 10\n"


def test_an_unloadable_extension_is_reported_in_one_line(script, tmp_path):
    """This happens on a machine of another kind, or with a copy of the sources."""
    copy = tmp_path / "copy" / "startup"
    copy.parent.mkdir()
    shutil.copytree(STARTUP, copy)
    (copy.parent / "_sa_profile.abi3.so").write_text("no library")
    plain = script("import sys\nprint('ran')\nsys.exit(3)")
    environment = plain.environment() | {"PYTHONPATH": str(copy)}
    done = subprocess.run([sys.executable, str(plain.path)], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("ran\n", 3)
    assert done.stderr.startswith("sa_profile: this Python process is not sampled: ImportError: ") and done.stderr.count("\n") == 1


PACKAGE = """
import sa_profile, time
with sa_profile.span("own"):
    time.sleep(0.1)
"""


def test_a_program_that_uses_the_package_has_samples_and_its_own_spans(script):
    process = script(PACKAGE).sampled()
    assert len(process.named("own")) == 1
    assert process.ms("MainThread", "<module> __main__") > 50


PICKLED = """
import pickle
import sa_profile
functions = [value for value in map(vars(sa_profile).get, sa_profile.__all__) if callable(value)]
assert sa_profile.span in functions and all(pickle.loads(pickle.dumps(value)) is value for value in functions)
"""


def test_a_program_may_pickle_the_functions_of_the_package(script):
    plain = script(PICKLED)
    for sampled in (False, True):
        plain.succeeds(sampled=sampled)


@pytest.fixture
def other_version(tmp_path):
    """Returns the folder of another version of the package, as a program's own environment may contain."""
    version = sa_profile.__version__.encode()
    package = tmp_path / "other" / "sa_profile"
    shutil.copytree(STARTUP.parent, package, ignore=shutil.ignore_patterns("__pycache__", "lib"))
    (library,) = package.glob("_sa_profile*.so")
    library.write_bytes(library.read_bytes().replace(version, b"9" * len(version)))
    return package.parent


USES_OTHER = PACKAGE + "print(sa_profile.__version__, sa_profile.__file__)\nimport lib.work\nlib.work.free(1)\n"


def test_a_program_may_have_another_version_of_the_package(script, other_version):
    plain = script(USES_OTHER, work="def free(x):\n    return x\n")
    done = plain.run(PYTHONPATH=str(other_version), SA_PROFILE_TRACK="lib.work:free")
    other = "9" * len(sa_profile.__version__)
    assert (done.stdout, done.stderr) == (f"{other} {other_version}/sa_profile/__init__.py\n", "")
    events = [event for process in plain.all_processes() for event in process.events]
    names = [event["name"] for event in events]
    assert names.count("own") == names.count("free") == 1 and "<module> __main__" in names
