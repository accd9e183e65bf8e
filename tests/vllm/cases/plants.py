"""Loads real servers with one planted cause at a time. The verdict must name that cause, and no cause without a plant.

With `SA_PROFILE_KEEP`, the screen, the page and the trace of each load are written to that folder. `SA_PROFILE_PLANTS` selects the servers to start.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from client import connect, load, random_prompt
from killing import kill_under_load, wait_until_dead
from server import PATIENT, Server

PLANTED = Path(__file__).parent / "planted"
STOPPED_S = 3
SPARSE, PAUSE_S = 12, 0.6  # requests of the client that sends too little, and its pause after each


async def steady(server):
    """Keeps eight requests in flight."""
    await load(server, 8, 48, 48)


async def long_answers(server):
    """Keeps sixteen requests in flight. The small KV cache only has room for three or four of them."""
    await load(server, 16, 48, 160, length=40)


async def sparse(server):
    """Sends one request after the other, with a pause after each."""
    stream = await connect(server)
    for _ in range(SPARSE):
        await stream.send(random_prompt(12), 16)
        await asyncio.sleep(PAUSE_S)
    stream.transport.close()


def stopped(victim):
    """Returns a load during which one process is stopped for some seconds."""

    async def stop(server):
        pid = next(pid for name, pid in server.processes().items() if name.startswith(victim))
        under_load = asyncio.ensure_future(load(server, 8, 48, 96))
        await asyncio.sleep(2)
        os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(STOPPED_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        await under_load

    return stop


async def crash(server):
    """Kills the worker under load."""
    await kill_under_load(server, server.worker())
    wait_until_dead(server, "EngineCore")


SMALL_CACHE = ["--block-size", "32", "--num-gpu-blocks-override", "33"]  # the smallest cache that accepts a request of 1,024 tokens
# Arguments of each server and its loads in order. Each load has a name, which the plugin may use as the plant, and the expected rule of the verdict.
SERVERS = {
    "default": (
        [],
        [
            ("none_0", None, steady),
            ("stopped_worker", "process_stalled", stopped("Worker")),
            ("none_1", None, steady),
            ("stopped_api_server", "process_stalled", stopped("APIServer")),
            ("gc", "gc", steady),
            ("slow_tokenizer", "frontend_bound", steady),
            ("little_load", "little_load", sparse),
            ("none_2", None, steady),
            ("crash", "crash", crash),
        ],
    ),
    "max_num_seqs_1": (["--max-num-seqs", "1"], [("max_num_seqs_1", "concurrency_capped", steady)]),
    "max_num_seqs_2": (["--max-num-seqs", "2"], [("max_num_seqs_2", "concurrency_capped", steady)]),
    "kv_full": (SMALL_CACHE, [("kv_full", "kv_full", long_answers)]),
}
RULES = {rule for _, loads in SERVERS.values() for _, rule, _ in loads if rule is not None}


def run(machine, report):
    """Runs each server and judges each load once it has ended."""
    planted = machine.folder / "planted"
    paths = [str(PLANTED), *([str(PATIENT)] if machine.options.patient else []), os.environ.get("PYTHONPATH")]
    environment = {"VLLM_PLANTED": str(planted), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    for name in os.environ.get("SA_PROFILE_PLANTS", "").split() or SERVERS:
        arguments, loads = SERVERS[name]
        planted.write_text("")
        with Server(machine, machine.folder / name, arguments, **environment) as server:
            asyncio.run(load(server, 8, 16, 8))  # warms up
            for load_name, rule, under_load in loads:
                time.sleep(1)
                planted.write_text(load_name)
                began = time.monotonic()
                asyncio.run(under_load(server))
                window = f"--last={time.monotonic() - began:.3f}s"
                planted.write_text("")
                judge(machine, report, machine.folder / name, window, (load_name, rule))


def judge(machine, report, folder, window, expected):
    """Checks the verdict on the last part of a run that may still be recording."""
    name, rule = expected
    verdict = machine.report(folder, window)["verdict"]
    is_right = verdict["rule"] == rule if rule else verdict["rule"] not in RULES
    report.check(f"plants_{name}", is_right, verdict["rule"], verdict["text"], verdict["evidence"])
    screen = machine.run("report", window, folder, check=True).stdout
    lines = screen.splitlines()
    report.check(f"plants_{name}_screen", len(lines) <= 40 and max(map(len, lines)) <= 100, screen)
    keep_folder = os.environ.get("SA_PROFILE_KEEP")
    if keep_folder:
        Path(keep_folder).mkdir(parents=True, exist_ok=True)
        Path(keep_folder, f"{name}.txt").write_text(screen)
        machine.run("report", f"--page={Path(keep_folder, name)}.html", window, folder, check=True)
        subprocess.run([machine.program("trace-merge"), window, f"--output={Path(keep_folder, name)}.json", folder], check=True)
