"""Measures output tokens per second with recording on and off, interleaved, until the difference is known precisely enough."""

import asyncio
import os
import random
import statistics
import time

from base_server import cpu_ns
from client import connect, random_prompt, realtime_priority
from differences import Differences
from machine import SETTLE_S
from server import Server

WINDOW_S = 1
GOAL = 0.005


class Load:
    """Connections that keep sending requests. Counts the chunks that arrive."""

    def __init__(self, server, concurrency, tokens):
        self.server, self.concurrency, self.tokens = server, concurrency, tokens
        self.chunks = 0
        self._running = True

    def _count(self, chunks, _now):
        self.chunks += chunks

    async def start(self):
        self._workers = [asyncio.create_task(self._work()) for _ in range(self.concurrency)]

    async def _work(self):
        stream = await connect(self.server)
        stream.on_chunks = self._count
        while self._running:
            # The lengths vary by a factor of three, so that requests do not start and end at the same time.
            await stream.send(random_prompt(12), random.randint(max(self.tokens // 2, 1), self.tokens * 3 // 2))
        stream.transport.close()

    async def stop(self):
        self._running = False
        await asyncio.gather(*self._workers)


class Window:
    """Throughput and CPU time of a server during one window."""

    def __init__(self, tokens, seconds, cpu_ns):
        self.per_second = tokens / seconds
        self.cpu_ns_per_token = {name: ns / tokens for name, ns in cpu_ns.items()}


async def measure(load, processes):
    """Measures one window."""
    began, chunks, cpu = time.monotonic(), load.chunks, cpu_ns(processes)
    await asyncio.sleep(WINDOW_S)
    used = {name: ns - cpu[name] for name, ns in cpu_ns(processes).items()}
    return Window(load.chunks - chunks, time.monotonic() - began, used)


class Comparison:
    """Comparison of recording on and off, turn by turn."""

    def __init__(self, options):
        self.turns = options.turns
        self.until = time.monotonic() + options.minutes * 60
        self.throughput, self.cpu = Differences(), {}
        self.rates = {True: [], False: []}

    def should_continue(self):
        is_precise = self.throughput.half_width() <= GOAL and len(self.throughput.values) >= self.turns
        return not is_precise and time.monotonic() < self.until

    def add(self, windows):
        """Adds the windows of one turn. Their order cancels out a drift of the machine."""
        for on, rates in self.rates.items():
            rates.append(statistics.fmean(one.per_second for one in windows[on]))
        self.throughput.values.append(self.rates[True][-1] / self.rates[False][-1] - 1)
        for name in windows[True][0].cpu_ns_per_token:
            ns = {on: statistics.fmean(one.cpu_ns_per_token[name] for one in windows[on]) for on in windows}
            self.cpu.setdefault(name, Differences()).values.append(ns[True] - ns[False])

    def print_result(self, report):
        for on, rates in self.rates.items():
            report.result(f"{'on' if on else 'off'}_tokens_per_second", statistics.median(rates))
        self.throughput.print_result(report, "throughput_difference_percent")
        for name, differences in self.cpu.items():
            differences.print_result(report, f"{name}_cpu_ns_per_output_token", "ns")
        reached = self.throughput.half_width()
        report.result("half_width_percent", 100 * reached, "reached" if reached <= GOAL else "time ran out")


def run(machine, report):
    """Switches recording on and off in one live server."""
    report.result("load_average_before", os.getloadavg()[0])
    folder = machine.folder / "throughput"
    with Server(machine, folder, SA_PROFILE_MAX_MB="64") as server, realtime_priority():
        asyncio.run(toggle(machine, server, folder)).print_result(report)


async def toggle(machine, server, folder):
    """Measures windows in the order on, off, off, on, so that a drift of the machine affects both states equally."""
    options = machine.options
    load = Load(server, options.concurrency, options.tokens)
    await load.start()
    await asyncio.sleep(5)
    comparison = Comparison(options)
    processes = server.processes()
    recording = True
    while comparison.should_continue():
        windows = {True: [], False: []}
        for on in (True, False, False, True):
            if on != recording:
                await asyncio.to_thread(machine.switch, "start" if on else "stop", folder)
                recording = on
            await asyncio.sleep(SETTLE_S)
            windows[on].append(await measure(load, processes))
        comparison.add(windows)
    await load.stop()
    return comparison
