"""Programs with several interpreters."""

import sys

import pytest

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


def test_the_end_of_another_interpreter_ends_no_samples(script):
    pytest.importorskip("_testcapi")
    assert script(AFTER_ANOTHER).sampled().ms("MainThread", "later") > 300


OWN_LOCKS = (
    BUSY
    + """
import threading
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

LOOP = '''
import time
def deep(left):
    return deep(left - 1) if left else [object() for _ in range(100)]
end = time.monotonic() + 1
while time.monotonic() < end:
    deep(50)
'''

def run():
    interpreters.run_string(interpreters.create(), LOOP)

threads = [threading.Thread(target=run) for _ in range(4)]
for thread in threads:
    thread.start()
busy(1)
for thread in threads:
    thread.join()
print("done")
"""
)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there interpreters share one lock")
def test_interpreters_with_locks_of_their_own_do_no_harm(script):
    plain = script(OWN_LOCKS)
    for _ in range(5):
        done = plain.run(SA_PROFILE_SAMPLE_MS="1")
        assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
