"""Measures the cost of recording in each process of a live vLLM server, as CPU time per request and per output token (tests/servers/costs.py)."""

import asyncio
import json
import os

from costs import Goal, measure
from server import Server

# A model with one small layer. The API server does the same work for it, and more windows fit into the time.
QUICK = json.dumps({"num_hidden_layers": 1, "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 1, "num_key_value_heads": 1})
GOAL = Goal("APIServer", limits_us={"request": 100.0, "token": 3.0}, half_widths_us={"request": 25.0, "token": 1.0})


def run(machine, report):
    """Measures one server."""
    report.result("load_average_before", os.getloadavg()[0])
    folder = machine.folder / "cost"
    # Without `patient`, a worker's CPU time is mostly its busy-wait loop.
    with Server(machine, folder, arguments=("--hf-overrides", QUICK), patient=True, SA_PROFILE_MAX_MB="64") as server:
        costs = asyncio.run(measure(machine, server, folder, GOAL))
    costs.report(report)
    report.result("load_average_after", os.getloadavg()[0])
