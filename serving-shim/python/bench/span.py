"""Measures what an event costs, compared with other recorders. Prints ``RESULT <case> <ns> <ratio_to_two_monotonic_ns>``.

usage: span.py [--quick] [CASE...]

Measures thread CPU time with the installed package. Each subject is a separate process, because recording is on or off for a whole process. All of them run at the same time and take turns, one case per
turn. A turn measures the floor (two calls of ``time.monotonic_ns``) before and after the case, and subtracts the same loop without the event. The program prints the medians of the
turns: of the ns, and of their ratio to the floor of the same turn. The table before also contains the smallest ns.
"""

import argparse
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from subject import SUBJECTS, environment

HERE = Path(__file__).resolve().parent
# (Events per turn, number of turns).
FULL = (20_000, 25)
QUICK = (10_000, 7)


class Subject:
    """A process that measures one case at a time."""

    def __init__(self, name, directory):
        self.name = name
        command = [sys.executable, "-W", "ignore", str(HERE / "subject.py"), name, str(directory)]
        self.process = subprocess.Popen(
            command, env=environment(name, directory), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.cases = []
        self.skipped = []
        while (line := self.read()) != ["READY"]:
            if line[0] == "CASE":
                self.cases.append(line[1])
            elif line[0] == "SKIPPED":
                self.skipped.append(" ".join(line[1:]))

    def read(self):
        fields = self.process.stdout.readline().split()
        if not fields:
            raise SystemExit(f"span.py: the process of {self.name} ended early: exit {self.process.wait()}")
        return fields

    def turn(self, case, count):
        """Measures a case; returns the ns of an event and of the floor."""
        print(case, count, file=self.process.stdin, flush=True)
        while (fields := self.read())[0] != "TURN":
            pass  # output of a library
        return float(fields[1]), float(fields[2])

    def end(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            raise SystemExit(f"span.py: the process of {self.name} failed: exit {self.process.returncode}")


def measure(subjects, wanted, count, turns):
    """Runs the turns of every case of every subject. Returns the ns of an event and of the floor in each turn, by case."""
    found = {}
    for turn in range(turns + 1):
        for subject in subjects:
            for case in subject.cases:
                if wanted and case not in wanted:
                    continue
                measured = subject.turn(case, count)
                if turn > 0:  # the first turn warms up
                    found.setdefault(case, []).append(measured)
    return found


def show(found):
    floors = [floor for turns in found.values() for _, floor in turns]
    print(f"Python {platform.python_version()}; two time.monotonic_ns(): {min(floors):.0f} / {statistics.median(floors):.0f} ns (least / median)")
    print(f"{'case':<36} {'least ns':>10} {'median ns':>10} {'ratio':>7}")
    results = []
    for case, turns in found.items():
        ns, ratio = statistics.median(ns for ns, _ in turns), statistics.median(ns / floor for ns, floor in turns)
        print(f"{case:<36} {min(turns)[0]:>10.0f} {ns:>10.0f} {ratio:>7.2f}")
        results.append(f"RESULT {case} {ns:.0f} {ratio:.2f}")
    print(*results, sep="\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer and shorter turns: seconds instead of minutes")
    parser.add_argument("case", nargs="*", help="measure only these cases")
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="sa-profile-bench-"))
    subjects = []
    try:
        subjects = [Subject(name, directory / name) for name in SUBJECTS]
        known = [case for subject in subjects for case in subject.cases]
        if unknown := set(options.case) - set(known):
            raise SystemExit(f"span.py: expected cases of {', '.join(known)}, found {', '.join(sorted(unknown))}")
        show(measure(subjects, options.case, *(QUICK if options.quick else FULL)))
        for subject in subjects:
            subject.end()
        for skipped in dict.fromkeys(reason for subject in subjects for reason in subject.skipped):
            print(f"SKIPPED {skipped}")
    finally:
        for subject in subjects:
            subject.process.kill()
            subject.process.wait()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
