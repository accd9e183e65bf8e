"""Kills a process of a server with SIGKILL under load."""

import asyncio
import contextlib
import os
import re
import signal
import time

from client import connect, random_prompt

PROMPTS = 64
LATE = 8  # requests sent after the process is dead


def names_first(text, pid):
    """Returns true if the list of killed processes begins with this one."""
    lines = [line.partition("killed: ")[2] for line in text.splitlines() if "killed: " in line]
    first = re.search(r"[\[(](?:pid )?(\d+)[\])]", lines[0]) if lines else None
    return len(lines) == 1 and first is not None and int(first[1]) == pid


async def send_late_requests(server):
    """Sends requests after a process has died, until the server has noticed. Returns how many were answered with a status of 500 or more."""
    answers = [await connect(server) for _ in range(LATE)]
    answers = [stream.send(random_prompt(12), 8) for stream in answers]
    ended = await asyncio.wait_for(asyncio.gather(*answers, return_exceptions=True), 60)
    return sum(str(one).startswith("HTTP/1.1 5") for one in ended)


async def kill_under_load(server, pid):
    """Sends more long prompts than one step can process, and kills the process while some are still running."""
    began = asyncio.Event()
    streams = [await connect(server) for _ in range(PROMPTS)]
    for stream in streams:
        stream.on_chunks = lambda chunks, _now: began.set() if chunks else None
    answers = [stream.send(random_prompt(180), 200) for stream in streams]
    first = asyncio.ensure_future(began.wait())
    done, _ = await asyncio.wait([first, *answers], timeout=120, return_when=asyncio.FIRST_COMPLETED)
    if first not in done:
        first.cancel()
        await asyncio.gather(*done)  # raises the reason if a request was refused
        raise TimeoutError("no output arrived")
    await asyncio.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    late = 0
    with contextlib.suppress(TimeoutError, OSError):
        late = await send_late_requests(server)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.gather(*answers, return_exceptions=True), 60)
    return late


def wait_until_dead(server, title, seconds=60):
    """Waits until the server's processes with this text in their title have ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and any(title in one for one in server.pids().values()):
        time.sleep(0.5)
