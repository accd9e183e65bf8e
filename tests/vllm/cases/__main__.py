"""Runs a real vLLM server under load with the plugin, and checks what its trace says against a client's own clock.

    python tests/vllm/cases --model DIR --bin DIR [CASE...]

Needs vLLM in this Python (a CPU build will do), sa_profile installed beside it and a model folder (random weights will do).
Prints RESULT lines; exits 1 if a check failed.

    latency     time to first token and end-to-end latency at concurrency 1 and 64, links of every request, import errors
    metrics     sums and counts of vLLM's own /metrics against those of a statement on the trace
    counters    what vLLM has counted of requests of every kind, of its cache and its drafts, against the trace; how many it has of each span, instant and counter in docs/vllm-events.md
    parallel    two workers of one engine, and two engines behind two API servers: their names before the first request, and their requests
    account     what each request's latency consists of: the spans on its way, and the stretches that none of them covers
    killed      worker, engine and API server, each killed by SIGKILL under load: the merge, and whose the unfinished spans are
    stopped     worker and engine, each stopped by SIGSTOP for a part of every second under load: whom the report blames
    plants      loads with one planted cause each, and some without: the report's verdict names the cause, or none
    newcomer    README's commands in their order, from `sa-profile run` to a killed worker
    throughput  recording on against off in one live server, interleaved, and recorder CPU-ns for each output token
    cost        recording on against off in one live server: CPU time of each process for each request and each output token, within 10 minutes
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
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; default: {', '.join(DEFAULT)}")
    parser.add_argument("--model", required=True, help="the model's folder")
    parser.add_argument("--bin", type=Path, required=True, help="folder of trace-merge and sa-profile")
    parser.add_argument("--port", type=int, default=8917)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--requests", type=int, default=512, help="of the concurrent run")
    parser.add_argument("--tokens", type=int, default=48, help="of each output; in a throughput case half to one and a half times as many")
    parser.add_argument("--minutes", type=float, default=60, help="most that one throughput case takes")
    parser.add_argument("--turns", type=int, default=30, help="least turns of a throughput case")
    parser.add_argument("--patient", action="store_true", help="vLLM's processes sleep while they wait, instead of spinning")
    parser.add_argument("--block-size", type=int, default=128, help="of the cache in the case counters; CPU builds before 0.13 want 16")
    parser.add_argument("--ready", type=float, default=600, help="most seconds until a server is ready; more where the machine is loaded")
    parser.add_argument("--keep", type=Path, help="folder for what is recorded; default: a temporary one")
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
