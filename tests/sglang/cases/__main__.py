"""Runs a real SGLang server under load with the plugin, and compares its trace with SGLang's own metrics and a client's clock.

    python tests/sglang/cases --model DIR --bin DIR [CASE...]

Needs SGLang in this Python (tests/sglang/run --setup installs it for the CPU), sa_profile in the same environment, and a model folder (random weights are enough).
Prints RESULT lines. Exits with 1 if a check failed.

    newcomer    a server with only SA_PROFILE_DIR set: names of the processes, and every section of the report
    metrics     sums and counts of SGLang's own /metrics compared with the report, and its times with the client's clock; on one and two ranks
    linked      one id of each request in all processes, and arrows from HTTP through scheduler and detokenizer to the answer; on one and two ranks
    killed      the scheduler, killed with SIGKILL under load: its batch and the requests in it
    idle        a minute without requests: no event, and at most 4 kB per process
    profile     /start_profile and /stop_profile switch a paused run, and /start_profile with a number of steps ends by itself
    cost        recording on and off in one live server: CPU time of each process per request and per output token, within 10 minutes
"""

import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[2] / "servers"))

import cost
import idle
import killed
import linked
import metrics
import newcomer
import profile
from suite import Suite

CASES = (newcomer, metrics, linked, killed, idle, profile, cost)
DEFAULT = ("newcomer", "metrics", "linked", "killed", "idle", "profile")

if __name__ == "__main__":
    sys.exit(Suite(__doc__, CASES, DEFAULT, requests=64).run())
