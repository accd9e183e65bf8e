"""The sums and counts of vLLM's own `/metrics` against those that a statement makes of the trace."""

import asyncio
import re
import urllib.request
from pathlib import Path

from client import load
from server import Server
from trace import ask

STATEMENT = Path(__file__).resolve().parents[4] / "report/sql/vllm_metrics.sql"
# The bar: 1 % of the sum, or 50 µs a request.
SHARE = 0.01
EACH_S = 50e-6


def run(machine, report):
    """One server that records all that it ever serves, so that both count the same requests."""
    if machine.tpq() is None or not STATEMENT.exists():
        print("SKIPPED metrics: the trace processor's tpq or the statement is not there")
        return
    options = machine.options
    folder = machine.folder / "metrics"
    with Server(machine, folder) as server:
        asyncio.run(load(server.port, 8, min(options.requests, 96), options.tokens))
        theirs = scrape(server.port)
    path, merged = machine.merge(folder)
    report.check("metrics_merge", merged.returncode == 0, merged.stderr.strip().splitlines()[0])
    (rows,) = ask(machine.tpq(), path, STATEMENT.read_text())
    for metric, sum_s, n in rows:
        if metric not in theirs:
            report.result(f"metrics_{metric}", sum_s, "s in the trace; this vLLM has no such metric")
            continue
        their_sum_s, their_n = theirs[metric]
        off = abs(sum_s - their_sum_s)
        within = off <= max(SHARE * their_sum_s, EACH_S * their_n)
        each_us = 1e6 * off / max(their_n, 1)
        report.result(f"metrics_{metric}_s", sum_s, f"/metrics {their_sum_s:.4f}, {each_us:.1f} µs a value apart; {n} values")
        report.check(f"metrics_{metric}_sum", within)
        report.check(f"metrics_{metric}_count", n == their_n, f"/metrics {their_n:.0f}")
    report.check("metrics_all", len(rows) == 7, ", ".join(row[0] for row in rows))


def scrape(port):
    """Metric → (sum in s, count) of all that `/metrics` has, over all engines."""
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30).read().decode()
    found = {}
    for name, what, value in re.findall(r"^vllm:(\w+?)_seconds_(sum|count)\{[^}]*\} (\S+)$", text, re.MULTILINE):
        total, count = found.get(name, (0.0, 0.0))
        found[name] = (total + float(value), count) if what == "sum" else (total, count + float(value))
    return found
