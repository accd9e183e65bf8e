"""What `run --python --track` and `--tasks` cost a program: prints ``RESULT <case> <ns>``, with the quartiles.

usage: calls.py [--turns N]

Processes that record, that have recording paused and that know nothing of us take turns. A result is the thread CPU time of a call, less that of the process that knows nothing in the
same turn; printed are the medians of the turns. Before Python 3.12 calls are wrapped instead of told, and tasks have no lives.
"""

import argparse
import asyncio
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CALLS, TASKS = 20_000, 2_000
TRACKED = {"SA_PROFILE_TRACK": "calls:tracked", "SA_PROFILE_SAMPLE_MS": "0"}
WAYS = {
    "alone": None,
    "track": TRACKED,
    "track_paused": TRACKED | {"SA_PROFILE_START": "paused"},
    "tasks": {"SA_PROFILE_TASKS": "1", "SA_PROFILE_SAMPLE_MS": "0"},
}


def tracked():
    """What gets spans."""


def untracked():
    """What gets none."""


def _raise():
    raise LookupError


def catch():
    """An exception passes one frame."""
    try:
        _raise()
    except LookupError:
        pass


async def handle():
    """What a task does."""


async def make_tasks(count):
    for _ in range(count):
        await asyncio.create_task(handle())


def _repeat(function):
    for _ in range(CALLS):
        function()


# What is measured, how many of it there are, and the ways in which it may cost something.
CASES = {
    "tracked_call": (lambda: _repeat(tracked), CALLS, ("track", "track_paused")),
    "untracked_call": (lambda: _repeat(untracked), CALLS, ("track",)),
    "exception_through_a_frame": (lambda: _repeat(catch), CALLS, ("track", "track_paused")),
    "task": (lambda: asyncio.run(make_tasks(TASKS)), TASKS, ("tasks",)),
}


def serve():
    """Measures every case on each line of stdin, and prints the ns."""
    for _ in sys.stdin:
        found = []
        for run, count, _ways in CASES.values():
            began = time.thread_time_ns()
            run()
            found.append((time.thread_time_ns() - began) / count)
        print(*found, flush=True)


class Process:
    """One of the ways."""

    def __init__(self, variables, folder):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SA_PROFILE_", "PYTHONPATH"))}
        path = [str(HERE)]
        if variables is not None:
            import sa_profile

            path.insert(0, str(Path(sa_profile.__file__).parent / "startup"))
            inherited |= variables | {"SA_PROFILE_DIR": folder, "SA_PROFILE_MAX_MB": "64"}
        inherited["PYTHONPATH"] = os.pathsep.join(path)
        self._process = subprocess.Popen(
            [sys.executable, "-c", "import calls; calls.serve()"], env=inherited, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def turn(self):
        """ns of each case."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"calls.py: a process ended early: exit {self._process.wait()}")
        return dict(zip(CASES, map(float, line.split()), strict=True))

    def end(self):
        self._process.stdin.close()
        if self._process.wait() != 0:
            raise SystemExit(f"calls.py: a process failed: exit {self._process.returncode}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=25)
    options = parser.parse_args()
    told = sys.version_info >= (3, 12)
    print(f"Python {platform.python_version()}: calls are {'told' if told else 'wrapped'}; load average {os.getloadavg()[0]:.1f}")
    more = {}
    with tempfile.TemporaryDirectory(prefix="sa-profile-bench-") as folder:
        processes = {}
        for way, variables in WAYS.items():
            own = Path(folder) / way
            own.mkdir()
            processes[way] = Process(variables, str(own))
        for turn in range(options.turns + 1):
            found = {way: process.turn() for way, process in processes.items()}
            for case, (_run, _count, ways) in CASES.items() if turn else ():  # the first one warms up
                for way in ways if told or case != "task" else ():
                    more.setdefault(f"{way}_{case}", []).append(found[way][case] - found["alone"][case])
        for process in processes.values():
            process.end()
    for name, values in more.items():
        low, middle, high = statistics.quantiles(values, n=4)
        print(f"RESULT {name} {middle:.0f} ({low:.0f} to {high:.0f})")
    if not told:
        print("SKIPPED lives of tasks: expected Python 3.12 or later")


if __name__ == "__main__":
    main()
