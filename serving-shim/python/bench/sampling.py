"""Measures what sampling a plain script costs, compared with other profilers. Prints a table of CPU and wall time, relative to the script alone.

usage: sampling.py [--turns N] [--ours] [--peers FOLDER]

Each script except the empty one uses about a second of CPU time, in its own process. All ways to run it take turns, alternately in one order and in the reverse, and each turn is compared with the script
alone in the same turn. The program prints the medians and the quartiles of the turns. `--ours` leaves the other profilers out. FOLDER is the `bin` of an environment with viztracer, py-spy and pyinstrument of `bench/requirements.txt`, by default the one of this Python.
py-spy samples from a separate process, whose CPU time counts too.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import sa_profile

STARTUP = Path(sa_profile.__file__).parent / "startup"
# Startup alone; a stack of 30 frames that always runs Python code; calls of short functions; 20 threads that wait while one works; and asyncio tasks.
SCRIPTS = {
    "nothing": "",
    "deep stack": """
def work(left):
    if left:
        return work(left - 1)
    for _ in range(200):
        sum(i * i for i in range(100_000))
work(30)
""",
    "short calls": """
def add(a, b):
    return a + b
total = 0
for i in range(12_000_000):
    total = add(total, i)
""",
    "20 threads": """
import threading
stop = threading.Event()
def wait(left):
    return wait(left - 1) if left else stop.wait()
threads = [threading.Thread(target=wait, args=(10,)) for _ in range(20)]
for thread in threads:
    thread.start()
for _ in range(200):
    sum(i * i for i in range(100_000))
stop.set()
for thread in threads:
    thread.join()
""",
    "100,000 tasks": """
import asyncio
async def handle():
    await asyncio.sleep(0)
async def main():
    for _ in range(1000):
        await asyncio.gather(*(handle() for _ in range(100)))
asyncio.run(main())
""",
}


class Way:
    """A way to run a script."""

    def __init__(self, name, command, variables=None):
        self.name, self.command, self.variables = name, command, variables or {}

    def run(self, script, folder):
        """Runs it, and returns the CPU and wall time of all its processes in s, and the number of bytes written."""
        output = tempfile.mkdtemp(dir=folder)
        command = [part.format(python=sys.executable, script=script, output=output) for part in self.command]
        variables = {name: value.format(output=output) for name, value in self.variables.items()}
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SA_PROFILE_", "PYTHONPATH"))}
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(command, env=environment | variables, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=output)
        wall = time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return cpu, wall, sum(path.stat().st_size for path in Path(output).rglob("*") if path.is_file())


def ways(peers):
    ours = {"PYTHONPATH": str(STARTUP), "SA_PROFILE_DIR": "{output}/p"}
    spy = [f"{peers}/py-spy", "record", "--rate", "100", "--format", "chrometrace", "-o", "{output}/o", "--", "{python}", "{script}"]
    inst = [f"{peers}/pyinstrument", "-i", "0.01", "-r", "json", "-o", "{output}/o", "{script}"]
    return [
        Way("alone", ["{python}", "{script}"]),
        Way("our samples, every 10 ms", ["{python}", "{script}"], ours),
        Way("our samples, every ms", ["{python}", "{script}"], ours | {"SA_PROFILE_SAMPLE_MS": "1"}),
        Way("our samples, and tasks", ["{python}", "{script}"], ours | {"SA_PROFILE_TASKS": "1"}),
        Way("our samples, and --track", ["{python}", "{script}"], ours | {"SA_PROFILE_TRACK": "__main__:add,__main__:handle"}),
        Way("py-spy, 100 a second", spy),
        Way("pyinstrument, every 10 ms", inst),
        Way("viztracer", [f"{peers}/viztracer", "-o", "{output}/o.json", "{script}"]),
    ]


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:+.1%} ({low:+.1%} to {high:+.1%})"


def measure(name, text, all_ways, turns, folder):
    script = Path(folder) / "script.py"
    script.write_text(text)
    found = {way.name: [] for way in all_ways}
    for turn in range(turns):
        for way in all_ways if turn % 2 == 0 else reversed(all_ways):
            found[way.name].append(way.run(script, folder))
    alone = found["alone"]
    print(f"{name}: alone {statistics.median(cpu for cpu, _, _ in alone):.2f} s CPU")
    for way in all_ways[1:]:
        pairs = list(zip(found[way.name], alone, strict=True))
        cpu = quartiles([one[0] / other[0] - 1 for one, other in pairs])
        more_ms = 1000 * statistics.median(one[0] - other[0] for one, other in pairs)
        wall = quartiles([one[1] / other[1] - 1 for one, other in pairs])
        kib = statistics.median(one[2] for one, _ in pairs) / 1024
        print(f"  {way.name:<28} CPU {cpu:<32} {more_ms:>+8.1f} ms   wall {wall:<32} {kib:>10,.0f} KiB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=11, help="number of turns")
    parser.add_argument("--ours", action="store_true", help="leave out the other profilers")
    parser.add_argument("--peers", default=str(Path(sys.executable).parent), help="where the other profilers' commands are")
    options = parser.parse_args()
    all_ways = [way for way in ways(options.peers) if way.command[0] == "{python}" or not options.ours and Path(way.command[0]).exists()]
    for name, text in SCRIPTS.items():
        with tempfile.TemporaryDirectory(prefix="sa-profile-bench-") as folder:
            measure(name, text, all_ways, options.turns, folder)


if __name__ == "__main__":
    main()
