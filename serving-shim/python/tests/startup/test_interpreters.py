"""Programs with several interpreters, and Pythons that are too old to be sampled."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import STARTUP
from .test_samples import BUSY

AFTER_ANOTHER = (
    BUSY
    + """
import _testcapi

assert _testcapi.run_in_subinterp("import atexit") == 0

def later():
    busy(0.5)

later()
"""
)


def test_sampling_continues_after_another_interpreter_ends(script):
    pytest.importorskip("_testcapi")
    assert script(AFTER_ANOTHER).sampled().ms("MainThread", "later") > 300


# Runs four interpreters at the same time.
OWN_LOCKS = (
    BUSY
    + """
import threading

LOOP = '''
import time
def deep(left):
    return deep(left - 1) if left else [object() for _ in range(100)]
end = time.monotonic() + 1
while time.monotonic() < end:
    deep(50)
'''

def run():
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    interpreter = interpreters.create()
    interpreters.run_string(interpreter, LOOP)
    interpreters.destroy(interpreter)

def later():
    busy(0.5)

threads = [threading.Thread(target=run) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
later()
"""
)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there interpreters share one lock")
def test_interpreters_with_their_own_gil_do_no_harm(script):
    assert script(OWN_LOCKS).sampled(SA_PROFILE_SAMPLE_MS="1").ms("MainThread", "later") > 300


def pythons():
    """Returns the paths of installed Pythons before 3.10 that can run."""
    versions = ["2.7", *(f"3.{minor}" for minor in range(6, 10))]
    named = [path for path in (shutil.which(f"python{version}") for version in versions) if path]
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    built = [str(path) for version in versions for path in root.glob(f"versions/{version}.*/bin/python")]
    runs = [one for one in (*named, *built) if subprocess.run([one, "-c", ""], capture_output=True).returncode == 0]
    return runs


def test_a_python_that_is_too_old_runs_the_program_with_a_message(script):
    """The oldest Python must be able to parse the file. Of the syntax it lacks, f-strings are the most likely mistake."""
    plain = script("import sys\nprint('ran')\nsys.exit(3)\n")
    found = pythons()
    for python in found:
        done = subprocess.run([python, str(plain.path)], env=plain.environment(), capture_output=True, text=True)
        assert (done.stdout, done.returncode) == ("ran\n", 3), (python, done)
        assert done.stderr.startswith("sa_profile: this Python process is not sampled: expected Python 3.10 or later, found "), (python, done.stderr)
        assert done.stderr.count("\n") == 1, (python, done.stderr)
    text = (STARTUP / "sitecustomize.py").read_text(encoding="ascii")
    newer = (ast.JoinedStr, ast.NamedExpr, ast.AnnAssign, ast.Nonlocal, ast.Starred, ast.AsyncFunctionDef, ast.YieldFrom, ast.MatMult)
    assert not [node for node in ast.walk(ast.parse(text)) if isinstance(node, newer)]
