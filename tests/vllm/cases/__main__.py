"""Runs a real vLLM server under load with the plugin, and compares its trace with a client's own clock.

    python tests/vllm/cases --model DIR --bin DIR [CASE...]

Needs vLLM in this Python (a CPU build is enough), sa_profile in the same environment, and a model folder (random weights are enough).
Prints RESULT lines. Exits with 1 if a check failed.

    latency     time to first token and end-to-end latency at concurrency 1 and 64, links of every request, import errors
    metrics     sums and counts of vLLM's own /metrics compared with a statement on the trace
    counters    vLLM's counts of requests of every kind, of its cache and of its drafts compared with the trace; numbers of each span, instant and counter in docs/vllm-events.md
    parallel    two workers of one engine, and two engines behind two API servers: their names before the first request, and their requests
    account     the parts of each request's latency: the spans along its way, and the gaps between them
    killed      worker, engine and API server, each killed with SIGKILL under load: the merge, and the owners of the unfinished spans
    stopped     worker and engine, each stopped with SIGSTOP for a part of every second under load: the process that the report blames
    plants      loads with one planted cause each, and some without: the report's verdict names the cause, or none
    newcomer    README's commands in order, from `sa-profile run` to a killed worker
    throughput  recording on and off in one live server, interleaved, and the recorder's CPU-ns per output token
    cost        recording on and off in one live server: CPU time of each process per request and per output token, within 10 minutes
"""

import argparse
import sys
import tempfile
from pathlib import Path

import account
import cost
import counters
import killed
import latency
import metrics
import newcomer
import parallel
import plants
import stopped
import throughput
from report import Report
from server import Machine

CASES = {case.__name__: case.run for case in (latency, metrics, counters, parallel, account, killed, stopped, plants, newcomer, throughput, cost)}
DEFAULT = ["newcomer", "latency", "metrics", "counters", "killed", "stopped", "plants"]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"any of {', '.join(CASES)}; default: {', '.join(DEFAULT)}")
    parser.add_argument("--model", required=True, help="folder of the model")
    parser.add_argument("--bin", type=Path, required=True, help="folder that contains trace-merge and sa-profile")
    parser.add_argument("--port", type=int, default=8917)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--requests", type=int, default=512, help="number of requests in the concurrent run")
    parser.add_argument("--tokens", type=int, default=48, help="output tokens per request; the case throughput varies this from half to one and a half times as many")
    parser.add_argument("--minutes", type=float, default=60, help="time limit of the cases throughput and cost")
    parser.add_argument("--turns", type=int, default=30, help="minimum number of turns in the case throughput")
    parser.add_argument("--patient", action="store_true", help="make vLLM's processes sleep while they wait, instead of spinning")
    parser.add_argument("--block-size", type=int, default=128, help="block size of the cache in the case counters; CPU builds before 0.13 need 16")
    parser.add_argument("--ready", type=float, default=600, help="seconds to wait until a server is ready; a loaded machine needs more")
    parser.add_argument("--keep", type=Path, help="folder for the recordings; default: a temporary one")
    options = parser.parse_intermixed_args()
    for case in options.cases:
        if case not in CASES:
            parser.error(f"case: expected one of {', '.join(CASES)}, found {case!r}")
    return options


def main():
    options = parse()
    report = Report()
    with tempfile.TemporaryDirectory() as scratch:
        machine = Machine(options, options.keep or Path(scratch))
        for case in options.cases or DEFAULT:
            CASES[case](machine, report)
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
