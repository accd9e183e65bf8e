"""The steps of a new user: the wheel is installed, `SA_PROFILE_DIR` is set, and a server answers requests and ends. The report has a value in every section."""

import asyncio
import json
import tempfile
import urllib.request
from pathlib import Path

from client import load
from server import Server
from shell import Shell
from trace import merged

REQUESTS, CONCURRENCY, TOKENS = 64, 8, 24
HEALTH_CHECKS = 3  # each one makes SGLang send itself a request
TIMES = ("queue", "ttft", "prefill", "decode", "e2e")


def run(machine, report):
    """Runs one server, and reads its report with the commands of the wheel."""
    folder = Path(tempfile.mkdtemp(prefix="newcomer-", dir=machine.folder))
    shell = Shell(folder)
    recording = folder / "profile_out"
    with Server(machine, recording) as server:
        timings = asyncio.run(load(server, CONCURRENCY, REQUESTS, TOKENS))
        for _ in range(HEALTH_CHECKS):
            urllib.request.urlopen(server.url("/health"), timeout=30)
        expected = server.process_names()
        closing = [line for line in server.log.read_text().splitlines() if "sa_profile: " in line]
    for line in closing:
        report.result("newcomer_said", line)
    found = shell.json("report", "--json", "profile_out")
    check_names(report, found, expected)
    check_requests(report, found, timings)
    check_sections(report, found)
    screen = shell.run("report", "profile_out").stdout
    report.check("newcomer_report_is_one_screen", 0 < len(screen.splitlines()) <= 40 and max(map(len, screen.splitlines())) <= 100, screen)
    merged(machine, report, "newcomer", recording)


def check_names(report, found, expected):
    """Checks that the recorded processes are those of the server, each with its name."""
    names = sorted(process["name"] for process in found["recorded"]["processes"] if not process["is_tracks"])
    report.check("newcomer_each_process_is_named", expected == set(names) and len(names) == len(expected), *names)


def check_requests(report, found, timings):
    """Checks that the report has the clients' requests, the one with which SGLang warms up, and no health check."""
    requests = {one["request_id"]: one for one in found["request"]}
    sent = {one.request_id: one for one in timings}
    others = sorted(requests.keys() - sent.keys())
    report.check("newcomer_report_has_each_request", sent.keys() <= requests.keys(), f"{len(sent.keys() & requests.keys())} of {len(sent)}")
    report.check("newcomer_only_the_warm_up_is_added", len(others) == 1, *others)
    answered = [one for one in sent if requests.get(one, {}).get("status") == "ok" and requests[one]["output_tokens"] == sent[one].tokens]
    report.check("newcomer_requests_are_answered_with_their_tokens", len(answered) == len(sent), f"{len(answered)} of {len(sent)}")
    report.check("newcomer_requests_have_prompt_tokens", all(one["prompt_tokens"] for one in requests.values()))


def check_sections(report, found):
    """Checks that each section of the report has values."""
    requests, n = found["requests"], len(found["request"])
    for name in TIMES:
        report.check(f"newcomer_{name}_of_each_request", requests[name]["n"] == n, f"{requests[name]['n']} of {n}, mean {requests[name]['mean_ns'] / 1e6:.3f} ms")
    report.check("newcomer_itl", requests["itl"]["n"] > n, requests["itl"]["n"])
    report.check("newcomer_parts", found["request_parts"]["n"] == n, *(part["name"] for part in found["request_parts"]["parts"]))
    load_series = {series["of"] for series in found["load"] if series["mean"] > 0}
    report.check("newcomer_load", {"running", "under_way"} <= load_series, *sorted(load_series))
    report.check("newcomer_batching", any(one.get("steps", 0) > 0 for one in found["batching"]), json.dumps(found["batching"])[:600])
    report.check("newcomer_slow_steps", bool(found["slow_steps"]), *(one["name"] for one in found["slow_steps"][:3]))
    report.check("newcomer_idle_causes", bool(found["idle"]), json.dumps(found["idle"])[:600])
    report.check("newcomer_cache", any(one["cached_tokens"] for one in found["request"]), sum(one["cached_tokens"] or 0 for one in found["request"]))
    settings = [one["values"] for one in found["settings"]]
    report.check("newcomer_settings", any(one.get("engine") == "sglang" for one in settings), json.dumps(settings)[:600])
    report.check("newcomer_verdict", bool(found["verdict"]["text"]), found["verdict"]["rule"], found["verdict"]["text"])
    report.result("newcomer_findings", len(found["findings"]), *(one["rule"] for one in found["findings"]))
