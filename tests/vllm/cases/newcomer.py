"""README's steps for a new user, from the installed wheel to a killed worker, with the figures compared with vLLM's `/metrics` and a client's clock.

Every command runs in one empty folder, and none but `snapshot`'s copy is given a run: each takes the newest one.
"""

import asyncio
import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

from client import first_of_all, load
from killed import kill_under_load, wait_until_dead
from latency import QUANTILES, quantile
from metrics import EACH_S, SHARE, scrape, sums
from server import Server, fetch_served
from stopped import keep_asking

REQUESTS, CONCURRENCY, TOKENS = 64, 8, 24
WARM_UP = 8  # requests before those that the client measures
SERVED_S = 30  # longest wait until `sa-profile serve` has read what was recorded
SKETCH = 0.005  # relative error of the live quantiles
FROM_CLIENT, FROM_CLIENT_MS = 0.05, 1.0  # whichever is more
STOPPED_S, AROUND_S = 3.0, 0.5
SQL_PYTHON = Path(__file__).resolve().parents[3] / "tests/sql/python"


class Shell:
    """The user's shell: the environment that has vLLM and the wheel is active."""

    def __init__(self, folder):
        self.folder = folder
        bin_folder = Path(sys.executable).parent
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SA_PROFILE_")}
        self.environment = kept | {"PATH": f"{bin_folder}:{kept.get('PATH', '')}", "VIRTUAL_ENV": str(bin_folder.parent)}
        self.command = bin_folder / "sa-profile"

    def run(self, *arguments, **environment):
        """Runs a command to its end."""
        words = [str(self.command), *map(str, arguments)]
        return subprocess.run(words, cwd=self.folder, env=self.environment | environment, capture_output=True, text=True, timeout=300)

    def json(self, *arguments, **environment):
        """Returns the JSON that a command prints."""
        done = self.run(*arguments, **environment)
        if done.returncode != 0:
            raise RuntimeError(f"sa-profile {' '.join(map(str, arguments))}: exit {done.returncode}: {done.stderr[-600:]}")
        return json.loads(done.stdout)

    @contextlib.contextmanager
    def started(self, *arguments):
        """Runs a command that serves. Yields the address that it prints on stderr, and the process."""
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
    """One server under `sa-profile run`. It answers requests, is watched, has its worker stopped, and dies of its worker."""
    folder = Path(tempfile.mkdtemp(prefix="newcomer-", dir=machine.folder))
    shell = Shell(folder)
    if not shell.command.exists():
        report.check("newcomer_wheel_brings_the_commands", False, str(shell.command))
        return
    with Server(machine, under=[str(shell.command), "run", "--"], cwd=folder) as server:
        timings = asyncio.run(ask(server))
        check_figures(shell, report, timings, scrape(server.port))
        check_live(shell, machine, report)
        check_stopped(shell, report, server)
        victim = server.worker()
        asyncio.run(kill_under_load(server, victim))
        wait_until_dead(server)
        code = server.wait()
        closing = server.log.read_text()
    check_crash(shell, machine, report, victim, code, closing)


async def ask(server):
    """Sends a few requests that warm the server up, and then the measured ones."""
    await load(server.port, 4, WARM_UP, 8)
    with first_of_all():
        return await load(server.port, CONCURRENCY, REQUESTS, TOKENS)


def check_figures(shell, report, timings, text):
    """Compares the report of the live run with `/metrics` and with the client."""
    found, theirs = shell.json("report", "--json"), sums(text)
    requests = found["requests"]
    report.check("newcomer_report_counts_each_request", requests["n"] == requests["ok"] == REQUESTS + WARM_UP, f"{requests['ok']} of {REQUESTS + WARM_UP}")
    for figure, metric in {"queue": "request_queue_time", "prefill": "request_prefill_time", "decode": "request_decode_time", "itl": "inter_token_latency"}.items():
        compare_with_metric(report, f"report_{figure}", requests[figure]["mean_ns"] / 1e9, requests[figure]["n"], theirs[metric])
    ours = {one["request_id"]: one for one in found["request"]}
    pairs = [(one, ours.get(one.request_id) or next((row for name, row in ours.items() if name.startswith(f"{one.request_id}-")), None)) for one in timings]
    report.check("newcomer_report_has_the_clients_requests", all(row for _, row in pairs), f"{sum(row is not None for _, row in pairs)} of {len(pairs)}")
    for figure, of_client, end in (("ttft", lambda one: one.ttft_ms, "first_chunk_ns"), ("e2e", lambda one: one.e2e_ms, "finished_ns")):
        for at in QUANTILES[:3]:  # the p99 of 64 is their longest
            client = quantile([of_client(one) for one, row in pairs if row], at)
            mine = quantile([(row[end] - row["arrival_ns"]) / 1e6 for _, row in pairs if row], at)
            off = abs(mine - client)
            report.result(f"newcomer_{figure}_p{at * 100:g}_ms", mine, f"client {client:.2f}, {off / client:.2%} apart")
            report.check(f"newcomer_{figure}_p{at * 100:g}_is_the_clients", off <= max(FROM_CLIENT * client, FROM_CLIENT_MS))
    check_sql(shell, report, theirs, requests)


def compare_with_metric(report, label, mean_s, n, metric):
    """Compares a mean and its number of values with vLLM's sum and count."""
    their_sum_s, their_n = metric
    off_s = abs(mean_s - their_sum_s / max(their_n, 1))
    report.result(f"newcomer_{label}_mean_ms", 1e3 * mean_s, f"/metrics {1e3 * their_sum_s / max(their_n, 1):.4f}, {1e6 * off_s:.2f} µs apart; {n} values")
    report.check(f"newcomer_{label}_mean", off_s <= max(SHARE * their_sum_s / max(their_n, 1), EACH_S))
    report.check(f"newcomer_{label}_count", n == their_n, f"{n}, /metrics {their_n:.0f}")


def check_sql(shell, report, theirs, requests):
    """Statements say what `/metrics` and the report say."""
    done = subprocess.run([SQL_PYTHON, "duckdb"], capture_output=True, text=True) if SQL_PYTHON.exists() else None
    if done is None or done.returncode != 0:
        print("SKIPPED newcomer sql: tests/sql/python cannot set up DuckDB here")
        return
    if "this build cannot" in shell.run("tables", "--help").stdout:
        print("SKIPPED newcomer sql: this wheel was built without tables; build-wheels.sh builds one with them")
        return
    engine = {"VIRTUAL_ENV": str(Path(done.stdout.strip()).parent.parent)}
    rows = shell.json("sql", "--format", "json", "vllm_metrics", **engine)
    for row in rows:
        if row["metric"] in theirs:
            compare_with_metric(report, f"sql_{row['metric']}", row["sum_s"] / row["n"], row["n"], theirs[row["metric"]])
    report.check("newcomer_sql_has_every_metric", len(rows) == 6, ", ".join(row["metric"] for row in rows))
    for row in shell.json("sql", "--format", "json", "request_summary", **engine):
        ours = requests.get(row["metric"])
        if ours is not None:
            off = max(abs(1e3 * row[f"{key}_us"] - ours[f"{key}_ns"]) for key in ("mean", "p50", "max"))
            report.check(f"newcomer_sql_{row['metric']}_is_the_reports", row["n"] == ours["n"] and off <= 1.5, f"{off} ns apart")


def check_live(shell, machine, report):
    """`watch`, `serve`, `snapshot` and `open` of the live run say what its report says."""
    requests = shell.json("report", "--json")["requests"]
    watched = shell.run("watch", "--once")
    report.check("newcomer_watch", watched.returncode == 0 and "goes on" in watched.stdout, watched.stderr.strip())
    with shell.started("serve", "--listen", f"127.0.0.1:{machine.options.port + 1}") as (address, _):
        token = urllib.parse.parse_qs(urllib.parse.urlsplit(address).query).get("token", [""])[0]
        stats = served_stats(address, token, requests["n"])
    counted = {name: stats["requests"][name] for name in ("ok", "aborted", "failed")}
    report.check("newcomer_serve_counts_each_request", counted["ok"] == requests["ok"], counted)
    for figure in ("ttft", "tpot", "itl", "e2e", "queue"):
        served, ours = stats["requests"][figure], requests[figure]
        apart = max(abs(served[key] - ours[key]) / max(ours[key], 1) for key in ("mean_ns", "p50_ns", "p90_ns", "p99_ns"))
        report.check(f"newcomer_serve_{figure}_is_the_reports", served["n"] == ours["n"] and apart <= SKETCH + 1e-6, f"{apart:.3%} apart, {served['n']} of {ours['n']} values")
    report.check("newcomer_snapshot", shell.run("snapshot", "aside").returncode == 0)
    aside = shell.json("report", "--json", "aside")["requests"]
    report.check("newcomer_snapshot_has_each_request", aside["n"] == requests["n"], f"{aside['n']} of {requests['n']}")
    status = shell.run("status", "aside")
    report.check("newcomer_snapshot_kills_nobody", "killed" not in status.stdout, status.stdout[-600:])
    trace = fetched(shell, "open", "--no-browser", "--port", str(machine.options.port + 2))
    answered = [event for event in trace["traceEvents"] if event["name"] == "request.answered"]
    report.check("newcomer_open_shows_each_request", len(answered) == requests["n"], f"{len(answered)} of {requests['n']}")


def served_stats(address, token, requests):
    """Returns `/stats` once it has that many requests, or after a while as it is then."""
    parts = urllib.parse.urlsplit(address)
    request = urllib.request.Request(f"{parts.scheme}://{parts.netloc}/stats", headers={"Authorization": f"Bearer {token}"})
    until = time.monotonic() + SERVED_S
    while True:
        stats = json.loads(fetch_served(request))
        if stats["requests"]["ok"] >= requests or time.monotonic() > until:
            return stats
        time.sleep(0.5)


def fetched(shell, *command):
    """Returns the trace that `sa-profile open` serves, taken as Perfetto's page takes it. The command ends by itself then."""
    with shell.started(*command) as (link, process):
        url = urllib.parse.parse_qs(urllib.parse.urlsplit(link).fragment.partition("?")[2])["url"][0]
        with urllib.request.urlopen(urllib.request.Request(url, headers={"Origin": "https://ui.perfetto.dev"}), timeout=60) as answer:
            trace = json.loads(answer.read())
        process.wait(30)
    return trace


def check_stopped(shell, report, server):
    """While SIGSTOP holds the worker, it is in a step, or the report blames it: it is late to begin a step, or to send its result."""
    seconds, device = asyncio.run(stop_worker(shell, server))
    causes = {cause["cause"]: cause["ns"] / 1e9 for cause in device["causes"]}
    others_s = sum(length for cause, length in causes.items() if cause not in ("worker", "ipc"))
    words = ", ".join(f"{cause} {length:.3f}" for cause, length in causes.items())
    report.result("newcomer_stopped_worker_others_s", others_s, f"of {seconds:.3f} s with a stop of {STOPPED_S} s: {words}")
    report.check("newcomer_stopped_worker_is_blamed", others_s <= seconds - 0.95 * STOPPED_S)


async def stop_worker(shell, server):
    """Stops the worker once under load. Returns how long a time the report was asked about, and why the worker was idle in it."""
    under_load = asyncio.gather(*(keep_asking(server.port) for _ in range(CONCURRENCY)))
    try:
        await asyncio.sleep(2)
        began = time.monotonic()
        await asyncio.sleep(AROUND_S)
        os.kill(server.worker(), signal.SIGSTOP)
        await asyncio.sleep(STOPPED_S)
        os.kill(server.worker(), signal.SIGCONT)
        await asyncio.sleep(AROUND_S)
        seconds = time.monotonic() - began
        found = await asyncio.to_thread(shell.json, "report", "--json", "--last", f"{seconds:.3f}s")
    finally:
        under_load.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await under_load
    (device,) = found["idle"]
    return seconds, device


def check_crash(shell, machine, report, victim, code, closing):
    """The closing lines of `run`, the report, `status` and `doctor` name the victim first, and the trace opens.

    SIGKILL may hit the victim between two spans. Then nothing shows that it was killed, and they say only that it may have died first.
    """
    trace = fetched(shell, "open", "--no-browser", "--port", str(machine.options.port + 2))
    opened = {event["pid"] for event in trace["traceEvents"] if event["ph"] == "B"}
    report.check("newcomer_open_shows_the_crash", bool(opened))
    is_in_span = victim in opened
    report.result("newcomer_victim_was_in_a_span", int(is_in_span))
    report.check("newcomer_run_ends_as_the_server_did", code < 125, code)  # from there on it would be the code of `run` or of a signal
    report.check("newcomer_run_names_the_victim_first", names_first(closing, victim, is_in_span), closing[-900:])
    report.check("newcomer_run_says_what_next", "next: sa-profile open" in closing)
    found = shell.json("report", "--json")
    first, crash = found["findings"][0], found["crash"]
    phrase = f"(pid {victim}) died first" if is_in_span else f"(pid {victim}) may have died before"
    report.check("newcomer_crash_is_the_first_finding", first["rule"] == "crash" and phrase in first["evidence"], first["evidence"])
    report.check("newcomer_crash_says_with_which_requests", crash["requests"] > 0, crash["requests"])
    for command in ("status", "doctor"):
        said = shell.run(command).stdout
        report.check(f"newcomer_{command}_agrees", names_first(said, victim, is_in_span), said[-900:])


def names_first(text, victim, is_in_span):
    """Returns whether the list of killed processes begins with this one. If it was in no span, it is enough that a line names it."""
    if not is_in_span:
        return re.search(rf"\b{victim}\b", text) is not None
    lines = [line for line in text.splitlines() if "killed: " in line]
    return len(lines) == 1 and first_pid(lines[0]) == victim


def first_pid(line):
    """Returns the pid that a list of killed processes names first."""
    found = re.search(r"[\[(](?:pid )?(\d+)[\])]", line.partition("killed: ")[2])
    return found and int(found.group(1))
