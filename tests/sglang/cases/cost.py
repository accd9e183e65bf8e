"""Measures the cost of recording in the processes of a live SGLang server, as CPU time per request and per output token (tests/servers/costs.py)."""

import asyncio
import json
import os

from costs import Goal, measure
from server import Server

# A model with one small layer. The processes do the same work for it, and more windows fit into the time.
QUICK = json.dumps({"num_hidden_layers": 1, "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 1, "num_key_value_heads": 1})
GOAL = Goal("all", limits_us={"request": 100.0, "token": 2.0}, half_widths_us={"request": 25.0, "token": 1.0}, concurrency=8)


def run(machine, report):
    """Measures one server."""
    report.result("load_average_before", os.getloadavg()[0])
    folder = machine.folder / "cost"
    arguments = ("--json-model-override-args", QUICK, "--sleep-on-idle")
    with Server(machine, folder, arguments=arguments, SA_PROFILE_MAX_MB="64") as server:
        costs = asyncio.run(measure(machine, server, folder, GOAL))
    costs.report(report)
    report.result("load_average_after", os.getloadavg()[0])
