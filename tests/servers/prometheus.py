"""Metrics in Prometheus' text format, which the engines serve at `/metrics`."""

import re
import urllib.request
from collections import Counter

# Tolerance for the sum of a histogram: 1 %, or 50 µs per request.
SHARE = 0.01
EACH_S = 50e-6


def scrape(server):
    """Returns the text of a server's `/metrics`."""
    return urllib.request.urlopen(server.url("/metrics"), timeout=30).read().decode()


def sums(text, engine):
    """Returns metric → (sum in s, count) of the histograms whose names begin with `engine`, over all label values."""
    found = {}
    for name, what, value in re.findall(rf"^{engine}:(\w+?)_seconds_(sum|count)\{{[^}}]*\}} (\S+)$", text, re.MULTILINE):
        total, count = found.get(name, (0.0, 0.0))
        found[name] = (total + float(value), count) if what == "sum" else (total, count + float(value))
    return found


def buckets(text, name):
    """Returns upper bound → number of values up to it, over all engines."""
    found = {}
    for bound, value in re.findall(rf'^{name}_bucket\{{[^}}]*le="([^"]+)"[^}}]*\}} (\S+)$', text, re.MULTILINE):
        found[float(bound)] = found.get(float(bound), 0) + float(value)
    return found


def totals(text, engine):
    """Returns counter → total of the counters whose names begin with `engine`, over all label values."""
    found = Counter()
    for name, value in re.findall(rf"^{engine}:(\w+)_total(?:\{{[^}}]*\}})? (\S+)$", text, re.MULTILINE):
        found[name] += float(value)
    return found


def compare_sums(report, label, rows, theirs):
    """Compares sums and counts of histograms from the trace with the server's `/metrics`.

    `rows` have the columns of the statement `vllm_metrics`, `theirs` is the result of `sums`.
    """
    for row in rows:
        metric, sum_s, n = row["metric"], row["sum_s"], row["n"]
        if metric not in theirs:
            report.result(f"{label}_{metric}", sum_s, "s in the trace; this version has no such metric")
            continue
        their_sum_s, their_n = theirs[metric]
        off = abs(sum_s - their_sum_s)
        within = off <= max(SHARE * their_sum_s, EACH_S * their_n)
        each_us = 1e6 * off / max(their_n, 1)
        report.result(f"{label}_{metric}_s", sum_s, f"/metrics {their_sum_s:.4f}, {each_us:.1f} µs a value apart; {n} values")
        report.check(f"{label}_{metric}_sum", within)
        report.check(f"{label}_{metric}_count", n == their_n, f"/metrics {their_n:.0f}")
