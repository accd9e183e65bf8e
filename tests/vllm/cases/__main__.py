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

import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[2] / "servers"))

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
from suite import Suite

CASES = (latency, metrics, counters, parallel, account, killed, stopped, plants, newcomer, throughput, cost)
DEFAULT = ("newcomer", "latency", "metrics", "counters", "killed", "stopped", "plants")


def main():
    suite = Suite(__doc__, CASES, DEFAULT, requests=512)
    add = suite.parser.add_argument
    add("--concurrency", type=int, default=64)
    add("--turns", type=int, default=30, help="minimum number of turns in the case throughput")
    add("--patient", action="store_true", help="make vLLM's processes sleep while they wait, instead of spinning")
    add("--block-size", type=int, default=128, help="block size of the cache in the case counters; CPU builds before 0.13 need 16")
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
