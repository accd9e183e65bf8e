"""The cases of an engine, run from the command line."""

import argparse
import tempfile
from pathlib import Path

from machine import Machine
from report import Report


class Suite:
    """Cases by name, and the names of the cases that run by default. Each case is a module with a function `run(machine, report)`."""

    def __init__(self, doc, cases, default, requests):
        self._cases = {case.__name__: case.run for case in cases}
        self._default = default
        self.parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
        add = self.parser.add_argument
        add("cases", nargs="*", metavar="CASE", help=f"any of {', '.join(self._cases)}; default: {', '.join(default)}")
        add("--model", required=True, help="folder of the model")
        add("--bin", type=Path, required=True, help="folder that contains trace-merge and sa-profile")
        add("--port", type=int, default=8917)
        add("--tokens", type=int, default=48, help="output tokens per request; the case throughput varies this from half to one and a half times as many")
        add("--requests", type=int, default=requests, help="number of requests in the concurrent run")
        add("--minutes", type=float, default=60, help="time limit of the cases that measure costs")
        add("--ready", type=float, default=600, help="seconds to wait until a server is ready; a loaded machine needs more")
        add("--keep", type=Path, help="folder for the recordings; default: a temporary one")

    def run(self):
        """Runs the cases that the command line names. Returns the exit code."""
        options = self.parser.parse_intermixed_args()
        for case in options.cases:
            if case not in self._cases:
                self.parser.error(f"case: expected one of {', '.join(self._cases)}, found {case!r}")
        report = Report()
        with tempfile.TemporaryDirectory() as scratch:
            machine = Machine(options, options.keep or Path(scratch))
            for case in options.cases or self._default:
                self._cases[case](machine, report)
        return report.exit_code()
