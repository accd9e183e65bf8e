"""Output tokens per second with recording on and off, interleaved, until the difference is known well enough."""

import asyncio
import math
import os
import random
import statistics
import time
from pathlib import Path

from client import connect, first_of_all, prompt_of
from server import Server

SETTLE_S = 0.35  # after a switch
WINDOW_S = 1
GOAL = 0.005
Z95 = 1.96  # standard deviations of a normal distribution
LEAST_TURNS = 30  # for an interval


class Load:
    """Connections that keep sending; counts the chunks that arrive."""

    def __init__(self, port, concurrency, tokens):
        self.port, self.concurrency, self.tokens = port, concurrency, tokens
        self.chunks = 0
        self._running = True

    def _count(self, chunks, _now):
        self.chunks += chunks

    async def start(self):
        self._workers = [asyncio.create_task(self._work()) for _ in range(self.concurrency)]

    async def _work(self):
        stream = await connect(self.port)
        stream.on_chunks = self._count
        while self._running:
            # Lengths differ by up to three times, so that requests do not begin and end together.
            await stream.send(self.port, prompt_of(12), random.randint(max(self.tokens // 2, 1), self.tokens * 3 // 2))
        stream.transport.close()

    async def stop(self):
        self._running = False
        await asyncio.gather(*self._workers)


class Window:
    """Tokens and CPU time of a server in one stretch of time."""

    def __init__(self, tokens, seconds, cpu_ns):
        self.per_second = tokens / seconds
        self.cpu_ns_per_token = {name: ns / tokens for name, ns in cpu_ns.items()}


async def measure(load, processes):
    """One window."""
    began, chunks, cpu = time.monotonic(), load.chunks, cpu_ns(processes)
    await asyncio.sleep(WINDOW_S)
    used = {name: ns - cpu[name] for name, ns in cpu_ns(processes).items()}
    return Window(load.chunks - chunks, time.monotonic() - began, used)


def cpu_ns(processes):
    """CPU time of all threads of each process, and of all of them."""
    found = {name: sum(map(_thread_ns, Path(f"/proc/{pid}/task").iterdir())) for name, pid in processes.items()}
    return found | {"all": sum(found.values())}


def _thread_ns(task):
    try:
        return int((task / "schedstat").read_text().split()[0])
    except OSError:
        return 0  # a thread that has just ended


class Differences:
    """Relative differences of turns. Their median counts, for a turn in which the machine did something else is far off."""

    def __init__(self):
        self.values = []

    def interval(self):
        """The 95 % confidence interval of the median, whatever the distribution: two of the values in their order. To stop as soon as
        it is narrow enough makes it hold a little less often."""
        if len(self.values) < LEAST_TURNS:
            return -math.inf, math.inf
        ordered, apart = sorted(self.values), Z95 * math.sqrt(len(self.values)) / 2
        middle = (len(ordered) - 1) / 2
        return ordered[max(math.floor(middle - apart), 0)], ordered[min(math.ceil(middle + apart), len(ordered) - 1)]

    def half_width(self):
        low, high = self.interval()
        return (high - low) / 2

    def tell(self, report, what, unit="%"):
        scale = 100 if unit == "%" else 1
        low, high = (end * scale for end in self.interval())
        mean = statistics.fmean(self.values) * scale
        report.result(what, statistics.median(self.values) * scale, f"({low:.3g} to {high:.3g} {unit}), {len(self.values)} turns, mean {mean:.3g}")


class Comparison:
    """On against off, turn by turn."""

    def __init__(self, options):
        self.turns = options.turns
        self.until = time.monotonic() + options.minutes * 60
        self.throughput, self.cpu = Differences(), {}
        self.rates = {True: [], False: []}

    def goes_on(self):
        is_known = self.throughput.half_width() <= GOAL and len(self.throughput.values) >= self.turns
        return not is_known and time.monotonic() < self.until

    def add(self, windows):
        """The windows of one turn through the order, in which a drift of the machine cancels out."""
        for on, rates in self.rates.items():
            rates.append(statistics.fmean(one.per_second for one in windows[on]))
        self.throughput.values.append(self.rates[True][-1] / self.rates[False][-1] - 1)
        for name in windows[True][0].cpu_ns_per_token:
            ns = {on: statistics.fmean(one.cpu_ns_per_token[name] for one in windows[on]) for on in windows}
            self.cpu.setdefault(name, Differences()).values.append(ns[True] - ns[False])

    def tell(self, report):
        for on, rates in self.rates.items():
            report.result(f"{'on' if on else 'off'}_tokens_per_second", statistics.median(rates))
        self.throughput.tell(report, "throughput_difference_percent")
        for name, differences in self.cpu.items():
            differences.tell(report, f"{name}_cpu_ns_per_output_token", "ns")
        reached = self.throughput.half_width()
        report.result("half_width_percent", 100 * reached, "reached" if reached <= GOAL else "time ran out")


def switch(machine, command, folder):
    """sa-profile start or stop: returns when all processes have obeyed."""
    done = machine.run(command, folder)
    if done.returncode != 0:
        raise RuntimeError(f"sa-profile {command}: {done.stderr}")


def run(machine, report):
    """Recording is switched in one live server."""
    report.result("load_average_before", os.getloadavg()[0])
    folder = machine.folder / "throughput"
    with Server(machine, folder, SA_PROFILE_MAX_MB="64") as server, first_of_all():
        asyncio.run(toggle(machine, server, folder)).tell(report)


async def toggle(machine, server, folder):
    """Windows in the order on off off on, so that a drift of the machine falls on both."""
    options = machine.options
    load = Load(server.port, options.concurrency, options.tokens)
    await load.start()
    await asyncio.sleep(5)
    comparison = Comparison(options)
    processes = server.processes()
    recording = True
    while comparison.goes_on():
        windows = {True: [], False: []}
        for on in (True, False, False, True):
            if on != recording:
                await asyncio.to_thread(switch, machine, "start" if on else "stop", folder)
                recording = on
            await asyncio.sleep(SETTLE_S)
            windows[on].append(await measure(load, processes))
        comparison.add(windows)
    await load.stop()
    return comparison
