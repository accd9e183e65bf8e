"""README's steps for a new user, from the installed wheel to a killed worker.

Every command runs in the same folder. Only the commands on `snapshot`'s copy name a run; all others use the newest one.
"""

import asyncio
import contextlib
import json
import os
import re
import select
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from client import load
from killed import kill_under_load, names_first, wait_until_dead
from metrics import SHARE, buckets, scrape
from server import Server

REQUESTS, CONCURRENCY, TOKENS = 64, 8, 24
SERVED_S = 30  # maximum time until `sa-profile serve` has read the recording


class Shell:
    """The user's shell, with the environment of vLLM and the wheel activated."""

    def __init__(self, folder):
        self.folder = folder
        bin_folder = Path(sys.executable).parent
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("SA_PROFILE_")}
        self.environment = inherited | {"PATH": f"{bin_folder}:{inherited.get('PATH', '')}", "VIRTUAL_ENV": str(bin_folder.parent)}
        self.command = bin_folder / "sa-profile"

    def run(self, *arguments):
        """Runs a command to its end."""
        return subprocess.run([self.command, *arguments], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300)

    def json(self, *arguments):
        """Returns the JSON that a command prints."""
        done = self.run(*arguments)
        if done.returncode != 0:
            raise RuntimeError(f"sa-profile {' '.join(arguments)}: exit {done.returncode}: {done.stderr[-600:]}")
        return json.loads(done.stdout)

    @contextlib.contextmanager
    def started(self, *arguments):
        """Runs a command that serves. Yields the address that it prints to stderr, and the process."""
        process = subprocess.Popen([str(self.command), *arguments], cwd=self.folder, env=self.environment, stderr=subprocess.PIPE)
        try:
            yield self._address(process), process
        finally:
            process.terminate()
            process.wait()
            process.stderr.close()

    @staticmethod
    def _address(process, seconds=60):
        text, until = b"", time.monotonic() + seconds
        while time.monotonic() < until:
            found = re.search(rb"http[^ ]*127\.0\.0\.1:\S+", text)
            if found and b"\n" in text[found.end() :]:
                return found.group().decode()
            if select.select([process.stderr], [], [], 1)[0]:
                piece = os.read(process.stderr.fileno(), 65536)
                if not piece:
                    break
                text += piece
        raise RuntimeError(f"expected the address of a server, found {text.decode()!r}")


def run(machine, report):
    """Runs one server under `sa-profile run`. It answers requests, is observed, and ends because its worker is killed."""
    folder = Path(tempfile.mkdtemp(prefix="newcomer-", dir=machine.folder))
    shell = Shell(folder)
    if not shell.command.exists():
        report.check("newcomer_wheel_brings_the_commands", False, str(shell.command))
        return
    with Server(machine, under=[str(shell.command), "run", "--"], cwd=folder) as server:
        asyncio.run(load(server.port, CONCURRENCY, REQUESTS, TOKENS))
        check_live(shell, machine, report, scrape(server.port))
        victim = server.worker()
        asyncio.run(kill_under_load(server, victim))
        wait_until_dead(server)
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


def fetched(shell, *command):
    """Returns the trace that `sa-profile open` serves, requested the way Perfetto's page does. The command then ends by itself."""
    with shell.started(*command) as (link, process):
        url = urllib.parse.parse_qs(urllib.parse.urlsplit(link).fragment.partition("?")[2])["url"][0]
        with urllib.request.urlopen(urllib.request.Request(url, headers={"Origin": "https://ui.perfetto.dev"}), timeout=60) as answer:
            trace = json.loads(answer.read())
        process.wait(30)
    return trace


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
