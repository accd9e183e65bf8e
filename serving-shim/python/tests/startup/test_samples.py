"""The samples of a plain script."""

import json
import subprocess
import sys
import time

import pytest

BUSY = """
import time

def busy(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))
"""

THREADS = (
    BUSY
    + """
import threading

def load():
    busy(0.3)

def wait():
    time.sleep(0.3)

thread = threading.Thread(target=load, name="loader")
thread.start()
wait()
thread.join()
"""
)


def test_each_thread_has_a_track_of_slices(script):
    process = script(THREADS).sampled()
    assert process.name == "plain.py"
    assert 200 < process.ms("MainThread", "wait") < 600
    assert 200 < process.ms("loader", "load") < 600
    assert process.ms("loader", "busy") <= process.ms("loader", "load")
    modules = {event["name"] for event in process.tracks["MainThread"] if event["name"].startswith("<module>")}
    assert "<module> __main__" in modules  # a slow import may also be sampled
    load = next(event for event in process.tracks["loader"] if event["name"] == "load")
    assert load["args"]["file"].endswith("plain.py") and load["args"]["line"] == 11 and load["cat"] == "samples"
    assert not any(event["args"]["file"].startswith("<frozen") for events in process.tracks.values() for event in events)
    waits = [event for event in process.tracks["MainThread"] if event["name"] == "wait"]
    # Equal neighbours are one slice. `threading` also has a function `wait`.
    assert len([event for event in waits if event["args"]["file"].endswith("plain.py")]) == 1


METHODS = BUSY + "class Engine:\n    def step(self):\n        busy(0.1)\n\nEngine().step()\n"


def test_names_of_methods_contain_their_class(script):
    expected = "Engine.step" if sys.version_info >= (3, 11) else "step"
    assert expected in script(METHODS).sampled().names()


COROUTINES = (
    BUSY
    + """
import asyncio

async def works():
    busy(0.15)

async def waits():
    await asyncio.sleep(0.3)

async def main():
    await asyncio.gather(works(), waits())

asyncio.run(main())
"""
)


def test_a_coroutine_is_sampled_while_it_runs_and_not_while_it_waits(script):
    process = script(COROUTINES).sampled()
    assert process.ms("MainThread", "works") > 80
    assert process.ms("MainThread", "waits") < 50


LONG = BUSY + "def outer():\n    busy(2.4)\n\nouter()\n"


def test_long_slices_are_written_in_pieces_of_a_second(script):
    process = script(LONG).sampled()
    pieces = [event["dur"] for event in process.tracks["MainThread"] if event["name"] == "outer"]
    assert len(pieces) == 3 and max(pieces) < 1_300_000
    assert process.ms("MainThread", "outer") > 2300


ENDS = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in a shell's background job
print("said", flush=True)
def last():
    time.sleep(1.5)
last()
"""


@pytest.mark.parametrize(
    ("end", "code", "least_ms"),
    [
        ("sys.exit(3)", 3, 1300),
        ("sys.exit('words')", 1, 1300),
        ("raise KeyError('x')", 1, 1300),
        ("os._exit(4)", 4, 900),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9, 900),
        ("os.kill(os.getpid(), signal.SIGTERM)", -15, 900),
        ("os.kill(os.getpid(), signal.SIGINT)", -2, 1300),
        ("os.execv(sys.executable, [sys.executable, '-S', '-c', 'raise SystemExit(5)'])", 5, 900),
    ],
)
def test_every_exit_is_unchanged_and_keeps_the_samples(script, end, code, least_ms):
    plain = script(ENDS + end + "\n")
    without, done = plain.run(sampled=False), plain.run()
    assert (without.returncode, without.stdout, without.stderr) == (done.returncode, done.stdout, done.stderr)
    assert done.returncode == code
    assert plain.processes()["plain.py"].ms("MainThread", "last") >= least_ms


PROCESSES = (
    BUSY
    + """
import multiprocessing, sys

def child():
    busy(0.2)

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    process = context.Process(target=child, name="engine")
    process.start()
    process.join()
    sys.exit(process.exitcode)
"""
)


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_children_of_multiprocessing_have_its_names(script, method):
    plain = script(PROCESSES)
    plain.succeeds(method)
    processes = plain.processes()
    assert {"plain.py", "engine"} <= processes.keys(), processes.keys()
    assert 100 < processes["engine"].ms("MainThread", "child") < 500
    names = processes.keys() - {"plain.py", "engine"}
    assert names <= {"multiprocessing.resource_tracker", "multiprocessing.forkserver"}, names


SUBPROCESSES = """
import subprocess, sys
if len(sys.argv) > 1:
    sum(range(3_000_000))
    sys.exit(7)
codes = [subprocess.run([sys.executable, *words]).returncode for words in ([__file__, "x"], ["-m", "json.tool", "-h"], ["-c", "1"])]
print(codes, file=sys.stderr)
"""


def test_children_of_subprocess_have_the_names_of_their_scripts(script):
    plain = script(SUBPROCESSES)
    assert plain.run().stderr == "[7, 0, 0]\n"
    assert plain.processes().keys() == {"plain.py", "json.tool", "python"}


FORK = (
    BUSY
    + """
import os

def parent():
    busy(0.2)

def child():
    busy(0.2)

pid = os.fork()
if pid == 0:
    child()
    raise SystemExit(3)
parent()
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
"""
)


def test_a_fork_is_two_processes(script):
    plain = script(FORK)
    plain.succeeds(before=["-W", "ignore::DeprecationWarning"])
    names = [process.names() for process in plain.all_processes()]
    assert sorted(("parent" in one, "child" in one) for one in names) == [(False, True), (True, False)]
    parent, child = sorted(process.name for process in plain.all_processes())
    assert parent == "plain.py" and child.startswith("plain.py fork ")


def test_a_fork_happens_without_the_sampling_thread(script):
    """Python 3.12 and later warn if there is another thread."""
    script(FORK).succeeds(before=["-W", "error"], SA_PROFILE_THREADS="0")


TWO_FORKS = (
    BUSY
    + """
import _imp, os, threading, time

def child():
    busy(0.4)

def fork():
    pid = os.fork()
    if pid == 0:
        child()
        began = time.monotonic()
        again = os.fork()
        if again == 0:
            os._exit(0)
        os.waitpid(again, 0)
        os._exit(int(time.monotonic() - began > 1))
    codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

codes = []
threads = [threading.Thread(target=fork) for _ in range(2)]
_imp.acquire_lock()  # a fork waits for it after everything else it does beforehand
for thread in threads:
    thread.start()
busy(0.3)
_imp.release_lock()
for thread in threads:
    thread.join()
assert codes == [0, 0], codes

def later():
    busy(0.4)

later()
"""
)


def test_two_threads_may_fork_at_once(script):
    plain = script(TWO_FORKS)
    plain.succeeds(before=["-W", "ignore::DeprecationWarning"])
    names = [{name for thread in process.tracks for name in process.names(thread)} for process in plain.all_processes()]
    assert sum("child" in one for one in names) == 2
    assert sum("later" in one for one in names) == 1


def test_a_paused_process_is_sampled_once_it_is_switched_on(script, tmp_path):
    plain = script(BUSY + "import sys\nprint('up', flush=True)\nsys.stdin.readline()\ndef late():\n    busy(1)\nlate()\n")
    environment = plain.environment(SA_PROFILE_START="paused")
    command, pipe = [sys.executable, str(plain.path)], subprocess.PIPE
    process = subprocess.Popen(command, env=environment, cwd=tmp_path, stdin=pipe, stdout=pipe, text=True)
    assert process.stdout.readline() == "up\n"
    time.sleep(0.3)
    order = {"version": 1, "id": "0123456789abcdef", "run": "r", "cause": "start", "from_realtime_ns": time.time_ns()}
    (plain.directory / "control").write_text(json.dumps(order) + "\n")
    process.communicate("\n")
    assert process.returncode == 0
    assert plain.processes()["plain.py"].ms("MainThread", "late") > 200


SLOW = """
import gc, sys
sys.path.insert(0, ".")
open("heavy.py", "w").write("import time\\ntime.sleep(0.05)\\n")
import heavy
class Slow:
    def __init__(self):
        self.itself = self
    def __del__(self):
        heavy.time.sleep(0.005)
Slow()
gc.collect()
"""


def test_long_imports_and_collections_are_spans(script):
    process = script(SLOW).sampled(SA_PROFILE_SAMPLE_MS="0")
    (found,) = process.named("import heavy")
    assert found["cat"] == "python" and found["dur"] >= 50_000
    assert any(event["dur"] >= 5_000 for event in process.named("gc.collect"))
    assert process.tracks == {}


def test_the_interval_comes_from_the_variable(script):
    plain = script(BUSY + "def one():\n    busy(0.01)\n\ndef two():\n    busy(0.01)\n\nfor _ in range(30):\n    one()\n    two()\n")
    assert len(plain.sampled(SA_PROFILE_SAMPLE_MS="300").tracks["MainThread"]) < 20


def test_a_signal_of_the_process_reaches_its_own_threads(script):
    text = """
import os, signal, time
def handler(*_):
    print("handled", flush=True)
signal.signal(signal.SIGUSR1, handler)
for _ in range(20):
    os.kill(os.getpid(), signal.SIGUSR1)
    time.sleep(0.01)
"""
    assert script(text).run().stdout == "handled\n" * 20


THREAD_CHURN = """
import threading, time
for number in range(300):
    thread = threading.Thread(target=time.sleep, args=(0.012,), name=f"short-{number}")
    thread.start()
    thread.join()
"""


def test_tracks_of_ended_threads_are_reused(script):
    process = script(THREAD_CHURN).sampled(SA_PROFILE_SAMPLE_MS="1")
    assert len({event["tid"] for event in process.named("thread_name")}) <= 300


def test_deep_recursion_is_shown_from_its_outermost_frame(script):
    text = BUSY + "def deep(left):\n    return busy(0.2) if left == 0 else deep(left - 1)\n\nimport sys\nsys.setrecursionlimit(3000)\ndeep(2000)\n"
    process = script(text).sampled()
    assert "deep" in process.names() and "<module> __main__" in process.names()
