"""Compares the sums and counts of vLLM's `/metrics` with a statement over the run's tables."""

import asyncio
import json
import re

from client import load
from prometheus import EACH_S, compare_sums, scrape, sums
from server import Server


def run(machine, report):
    """Runs one server that records everything that it ever serves, so that both sides count the same requests."""
    options = machine.options
    folder = machine.folder / "metrics"
    with Server(machine, folder) as server:
        asyncio.run(load(server, 8, min(options.requests, 96), options.tokens))
        text = scrape(server)
    theirs = sums(text, "vllm")
    check_settings(machine, report, folder, text)
    check_between_tokens(machine, report, folder, theirs["inter_token_latency"])
    rows = machine.sql(folder, "vllm_metrics")
    if rows is None:
        report.skip("metrics", "tests/sql/python cannot set up DuckDB here")
        return
    compare_sums(report, "metrics", rows, theirs)
    report.check("metrics_all", len(rows) == 6, ", ".join(row["metric"] for row in rows))


def check_settings(machine, report, folder, text):
    """Compares the settings in the report with those in `/metrics` and with the server's arguments."""
    cache_config = dict(re.findall(r'(\w+)="([^"]*)"', re.search(r"^vllm:cache_config_info\{(.*)\} ", text, re.MULTILINE)[1]))
    names = {"num_kv_blocks": "num_gpu_blocks", "kv_block_size": "block_size", "enable_prefix_caching": "enable_prefix_caching"}
    expected = {ours: cache_config[name] for ours, name in names.items()} | {"max_model_len": "1024", "graph_mode": "NONE"}
    found = [one["values"] for one in machine.report(folder)["settings"]]
    engines = [values for values in found if "max_num_seqs" in values]
    report.check("settings_of_each_process", len(found) == 2 and len(engines) == 1, json.dumps(found))
    for name, value in expected.items():
        report.check(f"settings_{name}", str(engines[0].get(name)) == value, str(engines[0].get(name)), value)


def check_between_tokens(machine, report, folder, metric):
    """Compares the times between tokens (ITL) of `sa-profile report` with the sum and count of vLLM's histogram."""
    their_sum_s, their_n = metric
    itl = machine.report(folder)["requests"]["itl"]
    off_us = 1e6 * abs(itl["mean_ns"] / 1e9 - their_sum_s / max(their_n, 1))
    report.result("itl_report_mean_ms", itl["mean_ns"] / 1e6, f"/metrics {1e3 * their_sum_s / max(their_n, 1):.4f}, {off_us:.2f} µs apart; {itl['n']} values")
    report.check("itl_report_count", itl["n"] == their_n, f"{itl['n']}, /metrics {their_n:.0f}")
    report.check("itl_report_mean", off_us <= 1e6 * EACH_S)
