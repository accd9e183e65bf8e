"""Compares latencies in the report with those on the client's clock."""

import time

CLOSE_MS = 2.0  # at concurrency 1
MONOTONIC_COARSE = 6  # CLOCK_MONOTONIC_COARSE of linux/time.h
# Smallest difference whose order counts: arrival times are only known to half a kernel tick in either direction.
ORDERED_MS = 1000 * time.clock_getres(MONOTONIC_COARSE)
QUANTILES = (0.5, 0.9, 0.95, 0.99)


def reported(machine, folder, trace):
    """Returns external id → (TTFT, E2E) in ms from `sa-profile report`. Both start when the request reached the kernel."""
    requests = {one["request_id"]: one for one in machine.report(folder)["request"]}
    found = {}
    for external_id, request_id in trace.answered().items():
        one = requests.get(request_id, {})
        times = [one.get(name) for name in ("arrival_ns", "first_chunk_ns", "finished_ns")]
        if None not in times:
            arrival_ns, first_chunk_ns, finished_ns = times  # all answers are streamed
            found[external_id] = ((first_chunk_ns - arrival_ns) / 1e6, (finished_ns - arrival_ns) / 1e6)
    return found


def compare(report, label, timings, ours):
    """Compares each request's latencies on the client's clock with those in the report."""
    report.check(f"{label}_all_in_report", all(one.request_id in ours for one in timings), f"{len(timings)} requests")
    pairs = [(one, ours[one.request_id]) for one in timings if one.request_id in ours]
    for what, client_value, at in (("ttft", lambda one: one.ttft_ms, 0), ("e2e", lambda one: one.e2e_ms, 1)):
        values = [(client_value(one), times[at]) for one, times in pairs]
        if label == "c1":
            differences = sorted(abs(client - ours) for client, ours in values)
            worst = differences[-1]
            report.result(f"{label}_{what}_difference_p50_ms", quantile(differences, 0.5), "p90", f"{quantile(differences, 0.9):.3g}")
            report.result(f"{label}_{what}_largest_difference_ms", worst, f"of {quantile([c for c, _ in values], 0.5):.1f} ms")
            report.check(f"{label}_{what}_within_{CLOSE_MS:g}_ms", worst <= CLOSE_MS)
        else:
            compare_many(report, f"{label}_{what}", values)


def compare_many(report, label, values):
    """Compares quantiles, and the order of all pairs that differ by more than the clocks may."""
    client, ours = [one for one, _ in values], [one for _, one in values]
    for at in QUANTILES:
        theirs, mine = quantile(client, at), quantile(ours, at)
        off = abs(mine - theirs) / theirs
        report.result(f"{label}_p{at * 100:g}_ms", mine, f"client {theirs:.2f}, {off:.2%} apart")
        report.check(f"{label}_p{at * 100:g}_within_5_percent", off <= 0.05)
    apart = [(a, b) for at, a in enumerate(values) for b in values[at + 1 :] if abs(a[0] - b[0]) > ORDERED_MS]
    swapped = sum((a[0] < b[0]) != (a[1] < b[1]) for a, b in apart)
    report.result(f"{label}_pairs_in_another_order", swapped, f"of {len(apart)} that differ by more than {ORDERED_MS:g} ms")
    report.check(f"{label}_same_order", swapped <= len(apart) / 100)


def quantile(values, at):
    """Returns an interpolated quantile."""
    ordered = sorted(values)
    place = at * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
