"""Measures the cost of recording in each process of a live server, as CPU time per request and per output token.

Recording is switched on and off in one server. In between, batches of requests with short and with long answers run to completion, so that no request
counts in two windows. Each turn yields two differences between on and off, for short and for long answers:

    difference = request + output tokens * token

Both unknowns are computed from the two differences of each turn.

The client does the same work for each request of a given length. If its CPU time differs between the windows of a turn, the machine ran at a different speed,
so the servers' times are scaled accordingly. On a machine with noisy neighbours, this reduces the differences between windows to a third.
"""

import asyncio
import statistics
import time
from dataclasses import dataclass

from base_server import cpu_ns
from client import connect, random_prompt
from differences import Differences
from machine import SETTLE_S

SHORT, LONG = 2, 48  # output tokens
BATCH = {SHORT: 128, LONG: 64}  # requests per window
FLUSH_S = 0.15  # time in which the recorder's own thread writes the rest of a batch
WARM_UP_TURNS = 1
MINUTES = 9.5
CLIENT = "client"
# Order of the windows in a turn. It makes a drift of the machine affect both states and both lengths equally.
TURN = [(True, (SHORT, LONG)), (False, (LONG, SHORT, SHORT, LONG)), (True, (LONG, SHORT))]


@dataclass
class Goal:
    """The load and the largest costs that the recorder may have under it, in µs per `request` and per output `token`."""

    judged: str  # name of the process whose costs count, or `all`
    limits_us: dict
    half_widths_us: dict  # required precision: half the width of the 95 % confidence interval
    concurrency: int = 16


class Clients:
    """Connections that each send the next request as soon as the previous one is answered."""

    def __init__(self, server):
        self._server = server
        self._streams = []

    async def connect(self, concurrency):
        self._streams = [await connect(self._server) for _ in range(concurrency)]

    async def batch(self, tokens):
        """Sends a batch and waits for all answers."""
        left = iter(range(BATCH[tokens]))

        async def work(stream):
            for _ in left:
                await stream.send(random_prompt(12), tokens)

        await asyncio.gather(*map(work, self._streams))

    def close(self):
        for stream in self._streams:
            stream.transport.close()


class Costs:
    """Results of all turns in µs, by process and kind of cost."""

    def __init__(self, goal):
        self.goal = goal
        self.found = {}
        self.off = {}  # CPU time of a request while recording is off

    def add(self, windows):
        """Adds the windows of a turn: CPU ns per request in each, by process, for recording on or off and number of tokens."""
        speed = {tokens: statistics.fmean(one[CLIENT] for on in (True, False) for one in windows[on, tokens]) for tokens in (SHORT, LONG)}
        for name in windows[True, SHORT][0].keys() - {CLIENT}:
            mean = {(on, tokens): statistics.fmean(one[name] * speed[tokens] / one[CLIENT] for one in found) / 1000 for (on, tokens), found in windows.items()}
            short, long = (mean[True, tokens] - mean[False, tokens] for tokens in (SHORT, LONG))
            token = (long - short) / (LONG - SHORT)
            for what, cost in (("short", short), ("long", long), ("token", token), ("request", short - SHORT * token)):
                self.found.setdefault((name, what), Differences()).values.append(cost)
            for tokens in (SHORT, LONG):
                self.off.setdefault((name, tokens), []).append(mean[False, tokens])

    def are_known(self):
        """Returns true if the judged costs are known precisely enough."""
        return bool(self.found) and all(self.found[self.goal.judged, what].half_width() <= most for what, most in self.goal.half_widths_us.items())

    def report(self, report):
        """Prints every cost with its interval, and compares the judged costs with their limits."""
        judged = self.goal.judged
        units = {"short": f"a request of {SHORT} tokens", "long": f"a request of {LONG} tokens", "request": "a request", "token": "an output token"}
        for (name, tokens), values in self.off.items():
            report.result(f"cost_{name}_off_{tokens}_tokens_cpu_us", statistics.median(values), "for a request while recording is off")
        for (name, what), differences in self.found.items():
            differences.print_result(report, f"cost_{name}_{what}_cpu_us", f"µs for {units[what]}")
        for what, limit in self.goal.limits_us.items():
            differences, most = self.found[judged, what], self.goal.half_widths_us[what]
            (low, high), half_width = differences.interval(), differences.half_width()
            if half_width > most and low <= limit < high:
                report.skip(f"cost_{judged}_{what}", f"this machine is too noisy: expected an interval of ± {most:g} µs at most, found ± {half_width:.3g} µs around the limit of {limit:g} µs")
            else:
                report.check(f"cost_{judged}_{what}", statistics.median(differences.values) <= limit, f"expected at most {limit:g} µs, found {low:.3g} to {high:.3g}")


async def measure(machine, server, folder, goal):
    """Switches recording on and off in a server until the costs are known precisely enough or time runs out. Returns the costs.

    The first turn warms the server up and is discarded."""
    until = time.monotonic() + 60 * min(machine.options.minutes, MINUTES)
    clients, costs = Clients(server), Costs(goal)
    await clients.connect(goal.concurrency)
    for _ in range(WARM_UP_TURNS):
        await turn(machine, server, clients, folder)
    while time.monotonic() < until and not costs.are_known():
        costs.add(await turn(machine, server, clients, folder))
    clients.close()
    return costs


async def turn(machine, server, clients, folder):
    """Returns the windows of one turn, by recording state and number of tokens. Recording is on at its start and end."""
    processes, windows, recording = server.processes(), {}, True
    for on, lengths in TURN:
        if on != recording:
            await asyncio.to_thread(machine.switch, "start" if on else "stop", folder)
            await asyncio.sleep(SETTLE_S)
            recording = on
        for tokens in lengths:
            windows.setdefault((on, tokens), []).append(await window(clients, tokens, processes))
    return windows


async def window(clients, tokens, processes):
    """Returns the CPU ns that each process and the client used per request of a batch."""
    before, client_before = cpu_ns(processes), time.process_time_ns()
    await clients.batch(tokens)
    client_ns = time.process_time_ns() - client_before
    await asyncio.sleep(FLUSH_S)
    used = {name: ns - before[name] for name, ns in cpu_ns(processes).items()} | {CLIENT: client_ns}
    return {name: ns / BATCH[tokens] for name, ns in used.items()}
