"""A process of span.py. ``subject.py NAME DIRECTORY`` lists its cases, then measures the case that each line of stdin names."""

import os
import sys
import time
from pathlib import Path

# In the order of their turns.
SUBJECTS = ("on", "off", "json", "viztracer", "nvtx")


def environment(name, directory):
    """Returns the environment of a subject's process."""
    kept = {variable: value for variable, value in os.environ.items() if not variable.startswith("SA_PROFILE_")}
    return {**kept, "SA_PROFILE_DIR": str(directory)} if name == "on" else kept


class Case:
    """A loop with the event, and the same loop without it. Both are functions of the number of iterations."""

    def __init__(self, name, body, empty=None):
        self.name = name
        self.body = body
        self.empty = empty or nothing

    def measure(self, count):
        """Returns the ns of an event, and of the floor at the same time."""
        before = timed(two_reads, count)
        loop = timed(nothing, count)
        with_event = timed(self.body, count)
        without = timed(self.empty, count)
        after = timed(two_reads, count)
        return with_event - without, (before + after) / 2 - loop


def timed(body, count):
    """Returns the thread CPU ns of an iteration."""
    began = time.thread_time_ns()
    body(count)
    return (time.thread_time_ns() - began) / count


def nothing(count):
    for _ in range(count):
        pass


def two_reads(count):
    now = time.monotonic_ns
    for _ in range(count):
        now()
        now()


def subject(name, directory):
    """Returns the cases of a subject, and messages about skipped ones."""
    if name in ("on", "off"):
        import ours

        return ours.cases(name)
    import peers

    return peers.cases(name, directory)


def main(name, directory):
    cases, skipped = subject(name, Path(directory))
    by_name = {case.name: case for case in cases}
    for case in by_name:
        print("CASE", case)
    for reason in skipped:
        print("SKIPPED", reason)
    print("READY", flush=True)
    for line in sys.stdin:
        case, count = line.split()
        ns, floor_ns = by_name[case].measure(int(count))
        print("TURN", ns, floor_ns, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
