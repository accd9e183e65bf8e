"""A client that streams completions and looks at its clock when it sends, at the first token and at the end."""

import asyncio
import contextlib
import itertools
import json
import os
import random
import socket
import time
from dataclasses import dataclass

END = b"0\r\n\r\n"  # the last chunk of an answer
WORDS = "red green blue fast slow cold warm near far old new high low east west day night".split()
_numbers = itertools.count()
_lengths = itertools.count()


@dataclass
class Timing:
    """One request as its client saw it; ns of the monotonic clock, as the trace has them."""

    request_id: str
    tokens: int
    sent_ns: int
    first_ns: int = 0
    end_ns: int = 0
    chunks: int = 0

    @property
    def ttft_ms(self):
        return (self.first_ns - self.sent_ns) / 1e6

    @property
    def e2e_ms(self):
        return (self.end_ns - self.sent_ns) / 1e6


class Stream(asyncio.Protocol):
    """One connection, on which requests follow each other. It looks at the clock before anything else."""

    def __init__(self):
        self.timing = None
        self.answered = None
        self.on_chunks = None
        self._status_checked = False
        self._tail = b""

    def connection_made(self, transport):
        self.transport = transport
        self._socket = transport.get_extra_info("socket")

    def send(self, port, prompt, tokens, chat=False):
        """Sends a request; the future is its timing, when the answer has ended."""
        name = f"bench-{next(_numbers)}"
        asked = dict(messages=[dict(role="user", content=prompt)]) if chat else dict(prompt=prompt)
        body = dict(model="model", max_tokens=tokens, ignore_eos=True, stream=True, temperature=0, **asked)
        text = json.dumps(body).encode()
        head = f"POST /v1/{'chat/' if chat else ''}completions HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
        head += f"x-request-id: {name}\r\ncontent-length: {len(text)}\r\n\r\n"
        self.answered = asyncio.get_running_loop().create_future()
        self._status_checked = False
        self._tail = b""
        self.timing = Timing(f"chatcmpl-{name}" if chat else f"cmpl-{name}-0", tokens, time.monotonic_ns())
        self.transport.write(head.encode() + text)
        self._acknowledge_at_once()
        return self.answered

    def data_received(self, data):
        now = time.monotonic_ns()
        self._acknowledge_at_once()
        if not self._status_checked:
            self._status_checked = True
            if not data.startswith(b"HTTP/1.1 200"):
                self._fail(ConnectionError(data[:200].decode(errors="replace")))
                return
        chunks = data.count(b'data: {')
        if chunks and not self.timing.first_ns:
            self.timing.first_ns = now
        self.timing.chunks += chunks
        if self.on_chunks is not None:
            self.on_chunks(chunks, now)
        self._tail = (self._tail + data)[-len(END) :]  # the end may come in two pieces
        if self._tail == END and not self.answered.done():
            self.timing.end_ns = now
            self.answered.set_result(self.timing)

    def _acknowledge_at_once(self):
        """vLLM's sockets gather small writes (Nagle) while one is unacknowledged, so that a client that delays its
        acknowledgements gets its tokens in heaps of 40 to 200 ms. That time is the network's, and in no server's trace.
        The kernel forgets the wish whenever it likes, so it is said each time."""
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def connection_lost(self, error):
        self._fail(error or ConnectionError("the server has closed the connection"))

    def _fail(self, error):
        if self.answered is not None and not self.answered.done():
            self.answered.set_exception(error)


@contextlib.contextmanager
def first_of_all():
    """Runs this process before all others meanwhile. vLLM's processes wait for each other in `sched_yield` loops, and beside one the kernel
    may let a client wait for milliseconds, at times for seconds; then its clock and its load say more of the machine than of the server."""
    try:
        # What it starts does not inherit this.
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except OSError as error:
        print("NOTE the client's clock includes waiting for a core:", error)
        yield
        return
    try:
        yield
    finally:
        # Only root may take the flag back.
        os.sched_setscheduler(0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))


def prompt_of(length):
    """A prompt that no cache knows."""
    return " ".join(random.choices(WORDS, k=length))


async def connect(port):
    """A connection to the server."""
    _, stream = await asyncio.get_running_loop().create_connection(Stream, "127.0.0.1", port)
    return stream


async def load(port, concurrency, requests, tokens, length=12, chat=False):
    """Streams so many requests, so many at a time; the timings of those that were answered."""
    left = iter(range(requests))
    timings = []

    async def worker():
        stream = await connect(port)
        for _ in left:
            # Lengths differ, so that requests do not begin and end together.
            timings.append(await stream.send(port, prompt_of(length), tokens + next(_lengths) % 16, chat))
        stream.transport.close()

    await asyncio.gather(*(worker() for _ in range(concurrency)))
    return timings
