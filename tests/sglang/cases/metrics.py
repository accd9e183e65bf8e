"""Compares the times and tokens in the report with SGLang's `/metrics`, and the times with the client's clock, on one and on two ranks."""

import asyncio
import re
import time

from client import load, realtime_priority
from latencies import quantile, reported
from prometheus import compare_sums, scrape, sums, totals
from server import Server
from trace import merged

CONCURRENCY = 8
# SGLang's histograms, and the moments of the report between which they measure.
METRICS = {
    "queue_time": ("queued_ns", "scheduled_ns"),
    "time_to_first_token": ("read_ns", "first_token_ns"),
    "e2e_request_latency": ("read_ns", "answered_ns"),
}
TOKENS = {"prompt_tokens": "prompt_tokens", "generation_tokens": "output_tokens", "cached_tokens": "cached_tokens"}
OTHER_RANKS = re.compile(r'^.*\btp_rank="(?!0").*\n', re.MULTILINE)
# Without httptools, times in the trace begin when the server has read the request, so the client's are longer. They are shorter only where a core was taken from the
# server between an answer's first part and its record.
SHORTER_MS, LONGER_MS = 50.0, 0.5
ABORT_S = 2  # SGLang's application returns this long after an answer, when it has looked whether the request must be aborted


def run(machine, report):
    """Runs a server of each size that records everything that it ever serves, so that both sides count the same requests."""
    for ranks in (1, 2):
        compare(machine, report, ranks)


def compare(machine, report, ranks):
    """Compares one server's `/metrics` and the client's clock with its trace."""
    label = f"metrics_tp{ranks}"
    folder = machine.folder / label
    # Otherwise the check that the server is ready sends a request, which SGLang counts in the queue only.
    with Server(machine, folder, ranks=ranks, SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION="false") as server:
        with realtime_priority():
            timings = asyncio.run(load(server, CONCURRENCY, machine.options.requests, machine.options.tokens))
        # Each rank counts every request. The trace counts it once, for rank 0.
        text = OTHER_RANKS.sub("", scrape(server))
        time.sleep(2 * ABORT_S)
    requests = machine.report(folder)["request"]
    compare_sums(report, label, list(histograms(requests)), sums(text, "sglang"))
    theirs = totals(text, "sglang")
    for name, column in TOKENS.items():
        ours = sum(one[column] or 0 for one in requests if one["answered_ns"] is not None)
        report.check(f"{label}_{name}", ours == theirs[name], f"{ours}, /metrics {theirs[name]:.0f}")
    compare_clocks(report, label, timings, reported(machine, folder, merged(machine, report, label, folder)))


def histograms(requests):
    """Yields the sum in seconds and the count of each histogram, as the report has them."""
    for metric, (start, end) in METRICS.items():
        values = [one[end] - one[start] for one in requests if one[start] is not None and one[end] is not None]
        yield {"metric": metric, "sum_s": sum(values) / 1e9, "n": len(values)}


def compare_clocks(report, label, timings, ours):
    """Compares each request's times with the client's. `ours` is the result of `reported`."""
    pairs = [(one, ours[one.request_id]) for one in timings if one.request_id in ours]
    report.check(f"{label}_all_in_report", len(pairs) == len(timings), f"{len(pairs)} of {len(timings)}")
    for what, client_ms, at in (("ttft", lambda one: one.ttft_ms, 0), ("e2e", lambda one: one.e2e_ms, 1)):
        shorter = [client_ms(one) - times[at] for one, times in pairs]
        p10, p50, p90 = (quantile(shorter, share) for share in (0.1, 0.5, 0.9))
        report.result(f"{label}_{what}_shorter_than_the_clients_p50_ms", p50, f"p10 {p10:.3g}, p90 {p90:.3g}, {min(shorter):.3g} to {max(shorter):.3g} ms")
        report.check(f"{label}_{what}_agrees_with_the_client", p10 >= -LONGER_MS and p50 <= SHORTER_MS)
