"""Compares the counters of vLLM's `/metrics` with the trace for requests of every kind, and prints how many events of each name the trace contains."""

import asyncio
import importlib.metadata
import re
import time
from collections import Counter

import mixture
import names
from client import load
from prometheus import scrape
from server import Server
from trace import merged

# On the CPU, older versions disable the cache by default, and their grammars need logits of 32 bits.
COMMON_ARGUMENTS = ["--enable-prefix-caching", "--dtype", "float32"]
SMALL_CACHE = 1280  # tokens: so few that long requests preempt each other
DRAFTS = ["--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 3}']
CANNOT_DRAFT = ("0.9.1", "0.11.0", "0.13.0", "0.18.0", "0.23.0")  # versions with CPU builds that cannot speculate (docs/vllm-events.md)
TOTAL = re.compile(r'^vllm:(\w+)_total\{([^}]*)\} (\S+)$', re.MULTILINE)
LABEL = re.compile(r'(finished_reason|position)="(\w+)"')
SEVERAL = ("request_success_", "spec_decode_num_accepted_tokens_per_pos_")  # one counter for each reason and position
RUNNING = re.compile(r"^vllm:num_requests_(?:running|waiting)\{[^}]*\} (\S+)$", re.MULTILINE)


def run(machine, report):
    """Tests a server with a small cache, for hits and preemptions, and one that speculates."""
    block = machine.options.block_size
    small_cache = ["--block-size", str(block), "--num-gpu-blocks-override", str(SMALL_CACHE // block)]
    statuses = {}
    found = compare(machine, report, "counters", small_cache, lambda server: statuses.update(mixture.send(server, machine.options.tokens)))
    answered = {kind: status for kind, status in statuses.items() if kind != "refused"}
    report.check("counters_statuses", statuses["refused"] == 400 and set(answered.values()) == {200}, statuses)
    check_nonzero(report, found, "num_preemptions", "prefix_cache_hits")
    try:
        drafted = compare(machine, report, "drafted", DRAFTS, lambda server: asyncio.run(load(server, 4, 16, machine.options.tokens)))
    except SystemExit as error:
        report.check("drafted_server", importlib.metadata.version("vllm").partition("+")[0] in CANNOT_DRAFT, error)
        return
    check_nonzero(report, drafted, "spec_decode_num_draft_tokens", "spec_decode_num_accepted_tokens")


def check_nonzero(report, found, *names):
    """Checks that these counters are not zero, since zeros would prove nothing."""
    for what in names:
        report.check(f"{what}_seen", found[what] > 0)


def compare(machine, report, name, arguments, send):
    """Compares the counters of one server. It records everything that it ever serves, so that both sides count the same requests."""
    folder = machine.folder / name
    with Server(machine, folder, arguments=[*COMMON_ARGUMENTS, *arguments], SA_PROFILE_LEVEL="verbose") as server:
        send(server)
        theirs = totals(wait_until_idle(server))
        complaints = [line for line in server.log.read_text().splitlines() if "sa_profile: " in line]
    for line in complaints:
        report.result(f"{name}_said", line)
    trace = merged(machine, report, name, folder)
    for entry, count in names.counted(trace).items():
        report.result(f"{name}_names", count, *entry)
    found = counts_of(trace)
    alone = {what for what, count in theirs.items() if count and what.startswith(SEVERAL)} - set(found)
    for what in [*found, *sorted(alone)]:
        ours, their = found.get(what, 0), theirs.get(what, 0)
        report.check(f"{name}_{what}", ours == their, f"{ours}, /metrics {their:.0f}")
    return found


def counts_of(trace):
    """Returns counts from the trace, by vLLM's names of its counters."""
    finished = trace.finished().values()
    cache = [event["args"] for event in trace.by_name["prefix_cache"] if event["ph"] == "C"][-1:]  # the only engine's counters, which are cumulative
    steps = [event.get("args", {}) for event in trace.by_name["scheduler.update_from_output"]]
    found = {
        "num_preemptions": sum(len(event.get("args", {}).get("preempted_ids", ())) for event in trace.by_name["scheduler.schedule"]),
        "prompt_tokens": sum(args["prompt_tokens"] for args in finished),
        "prefix_cache_queries": sum(args["queries"] for args in cache),
        "prefix_cache_hits": sum(args["hits"] for args in cache),
        "spec_decode_num_draft_tokens": sum(step.get("drafted", 0) for step in steps),
        "spec_decode_num_accepted_tokens": sum(step.get("accepted", 0) for step in steps),
    }
    reasons = Counter(args["reason"] for args in finished)
    del reasons["abort"]  # vLLM does not count requests that the client abandoned
    found |= {f"request_success_{reason}": count for reason, count in reasons.items()}
    accepted = Counter()
    for event in trace.by_name["accepted_by_position"]:
        accepted.update(event["args"])
    # vLLM counts positions from 0.
    return found | {f"spec_decode_num_accepted_tokens_per_pos_{int(position) - 1}": count for position, count in accepted.items()}


def totals(text):
    """Returns the sum of each counter, by name and, where it distinguishes counters, label."""
    found = Counter()
    for name, labels, value in TOTAL.findall(text):
        label = LABEL.search(labels)
        found[f"{name}_{label[2]}" if label else name] += float(value)
    return found


def wait_until_idle(server, seconds=60):
    """Returns the text of `/metrics` once no request is left, including abandoned ones."""
    until = time.monotonic() + seconds
    while True:
        text = scrape(server)
        if not any(float(value) for value in RUNNING.findall(text)):
            return text
        if time.monotonic() > until:
            raise TimeoutError("the server still has requests")
        time.sleep(0.2)
