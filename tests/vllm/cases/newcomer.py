"""README's steps for a new user, from the installed wheel to a killed worker.

Every command runs in the same folder. Only the commands on `snapshot`'s copy name a run; all others use the newest one.
"""

import asyncio
import contextlib
import json
import re
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from client import load
from killing import kill_under_load, names_first, wait_until_dead
from prometheus import SHARE, buckets, scrape
from server import Server
from shell import Shell, fetched

REQUESTS, CONCURRENCY, TOKENS = 64, 8, 24
SERVED_S = 30  # maximum time until `sa-profile serve` has read the recording


def run(machine, report):
    """Runs one server under `sa-profile run`. It answers requests, is observed, and ends because its worker is killed."""
    folder = Path(tempfile.mkdtemp(prefix="newcomer-", dir=machine.folder))
    shell = Shell(folder)
    if not shell.command.exists():
        report.check("newcomer_wheel_brings_the_commands", False, str(shell.command))
        return
    with Server(machine, under=[str(shell.command), "run", "--"], cwd=folder) as server:
        asyncio.run(load(server, CONCURRENCY, REQUESTS, TOKENS))
        check_live(shell, machine, report, scrape(server))
        victim = server.worker()
        asyncio.run(kill_under_load(server, victim))
        wait_until_dead(server, "EngineCore")
        code = server.wait()
        closing = server.log.read_text()
    check_crash(shell, machine, report, victim, code, closing)


def check_live(shell, machine, report, text):
    """Checks that `report`, `watch`, `serve`, `snapshot` and `open` see each request of the live run. `text` is vLLM's `/metrics`."""
    found = shell.json("report", "--json")
    requests, phases = found["requests"], [phase["kind"] for phase in found["run_phases"]]
    report.check("newcomer_report_leaves_start_up_out", phases[:1] == ["start_up"] and not found["serving"]["is_whole"], phases)
    lines = shell.run("report").stdout.splitlines()
    report.check("newcomer_report_is_one_screen", 0 < len(lines) <= 40 and max(map(len, lines)) <= 100, len(lines))
    report.check("newcomer_report_counts_each_request", requests["n"] == requests["ok"] == REQUESTS, f"{requests['ok']} of {REQUESTS}")
    watched = shell.run("watch", "--once")
    report.check("newcomer_watch", watched.returncode == 0 and "goes on" in watched.stdout, watched.stderr.strip())
    with shell.started("serve", "--listen", f"127.0.0.1:{machine.options.port + 1}") as (address, _):
        check_served(report, address, text)
    report.check("newcomer_snapshot", shell.run("snapshot", "aside").returncode == 0)
    aside = shell.json("report", "--json", "aside")["requests"]
    report.check("newcomer_snapshot_has_each_request", aside["n"] == REQUESTS, f"{aside['n']} of {REQUESTS}")
    status = shell.run("status", "aside")
    report.check("newcomer_snapshot_kills_nobody", "killed" not in status.stdout, status.stdout[-600:])
    trace = fetched(shell, "open", "--no-browser", "--port", str(machine.options.port + 2))
    answered = [event for event in trace["traceEvents"] if event["name"] == "request.answered"]
    report.check("newcomer_open_shows_each_request", len(answered) == REQUESTS, f"{len(answered)} of {REQUESTS}")


def check_served(report, address, text):
    """Checks that `sa-profile serve` counts each request and has the same histogram of the times between tokens (ITL) as vLLM."""
    parts = urllib.parse.urlsplit(address)
    token = urllib.parse.parse_qs(parts.query).get("token", [""])[0]

    def served(path):
        request = urllib.request.Request(f"{parts.scheme}://{parts.netloc}{path}", headers={"Authorization": f"Bearer {token}"})
        with contextlib.suppress(urllib.error.HTTPError):  # 503 until the server has read the run for the first time
            return urllib.request.urlopen(request, timeout=30).read().decode()
        return ""

    theirs = buckets(text, "vllm:inter_token_latency_seconds")
    until = time.monotonic() + SERVED_S
    while (ours := buckets(served("/metrics"), "sa_profile_inter_token_latency_seconds")) != theirs and time.monotonic() < until:
        time.sleep(0.5)
    moved = sum(abs(ours.get(bound, 0) - count) for bound, count in theirs.items())
    report.result("newcomer_served_buckets", len(ours), f"of {len(theirs)}; {moved:.0f} values on the other side of a bound")
    report.check("newcomer_served_bounds", ours.keys() == theirs.keys(), f"{sorted(ours)}, /metrics {sorted(theirs)}")
    report.check("newcomer_served_counts", moved <= SHARE * max(theirs.values()), moved)
    counted = json.loads(served("/stats"))["requests"]["ok"]
    report.check("newcomer_serve_counts_each_request", counted == REQUESTS, f"{counted} of {REQUESTS}")


def check_crash(shell, machine, report, victim, code, closing):
    """Checks that the closing lines of `run` name the victim first, and that the trace opens.

    If SIGKILL hits the victim between two spans, nothing shows that it was killed. The lines then only say that it may have died first.
    """
    trace = fetched(shell, "open", "--no-browser", "--port", str(machine.options.port + 2))
    opened = {event["pid"] for event in trace["traceEvents"] if event["ph"] == "B"}
    report.check("newcomer_open_shows_the_crash", bool(opened))
    report.result("newcomer_victim_was_in_a_span", int(victim in opened))
    report.check("newcomer_run_ends_as_the_server_did", code < 125, code)  # larger codes are those of `run` itself or of a signal
    is_named = names_first(closing, victim) if victim in opened else re.search(rf"\b{victim}\b", closing)
    report.check("newcomer_run_names_the_victim_first", is_named, closing[-900:])
    report.check("newcomer_run_says_what_next", "next: sa-profile open" in closing)
