"""A client that streams completions and records when it sends, when the first token arrives and when the answer ends."""

import asyncio
import contextlib
import itertools
import json
import os
import random
import socket
import time
from dataclasses import dataclass, field

END = b"0\r\n\r\n"  # last chunk of an answer
WORDS = "red green blue fast slow cold warm near far old new high low east west day night".split()
_numbers = itertools.count()
_lengths = itertools.count()


@dataclass
class Identity:
    """How a client gives a request an id: `request_id` is the id in the trace."""

    request_id: str
    headers: dict = field(default_factory=dict)
    fields: dict = field(default_factory=dict)


@dataclass
class Timing:
    """Times of one request according to the client, in ns of the monotonic clock, like in the trace."""

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
    """A connection that sends one request after the other. On incoming data, it reads the clock before anything else."""

    def __init__(self, server):
        self._server = server
        self.timing = None
        self.answered = None
        self.on_chunks = None
        self._status_checked = False
        self._tail = b""

    def connection_made(self, transport):
        self.transport = transport
        self._socket = transport.get_extra_info("socket")

    def send(self, prompt, tokens, chat=False):
        """Sends a request. The returned future yields its timing once the answer has ended."""
        identity = self._server.identity(f"bench-{next(_numbers)}", chat)
        prompt_fields = dict(messages=[dict(role="user", content=prompt)]) if chat else dict(prompt=prompt)
        body = dict(model="model", max_tokens=tokens, ignore_eos=True, stream=True, temperature=0, **prompt_fields, **identity.fields)
        text = json.dumps(body).encode()
        headers = {"host": f"127.0.0.1:{self._server.port}", "content-type": "application/json", **identity.headers, "content-length": len(text)}
        head = f"POST /v1/{'chat/' if chat else ''}completions HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n"
        self.answered = asyncio.get_running_loop().create_future()
        self._status_checked = False
        self._tail = b""
        self.timing = Timing(identity.request_id, tokens, time.monotonic_ns())
        self.transport.write(head.encode() + text)
        self._acknowledge_immediately()
        return self.answered

    def data_received(self, data):
        now = time.monotonic_ns()
        self._acknowledge_immediately()
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
        self._tail = (self._tail + data)[-len(END) :]  # the end may arrive in two pieces
        if self._tail == END and not self.answered.done():
            self.timing.end_ns = now
            self.answered.set_result(self.timing)

    def _acknowledge_immediately(self):
        """Makes the kernel acknowledge received data immediately.

        The server's sockets collect small writes while one is unacknowledged (Nagle's algorithm). If the client delayed its acknowledgements, tokens
        would arrive in batches of 40 to 200 ms. That time belongs to the network and is in no server's trace. The kernel may drop this mode at any
        time, so it is set again after each read."""
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def connection_lost(self, error):
        self._fail(error or ConnectionError("the server closed the connection"))

    def _fail(self, error):
        if self.answered is not None and not self.answered.done():
            self.answered.set_exception(error)


@contextlib.contextmanager
def realtime_priority():
    """Gives this process priority over all others during the block.

    The engines' processes wait for each other in loops. Next to such a loop, the kernel may delay a client for milliseconds and sometimes
    seconds. Its clock and load would then measure the machine more than the server."""
    try:
        # Child processes do not inherit this.
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except OSError as error:
        print("NOTE the client's clock includes waiting for a core:", error)
        yield
        return
    try:
        yield
    finally:
        # Only root may clear the flag.
        os.sched_setscheduler(0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))


def random_prompt(length):
    """Returns a random prompt that is in no cache."""
    return " ".join(random.choices(WORDS, k=length))


async def connect(server):
    """Opens a connection to the server."""
    _, stream = await asyncio.get_running_loop().create_connection(lambda: Stream(server), "127.0.0.1", server.port)
    return stream


async def load(server, concurrency, requests, tokens, length=12, chat=False):
    """Streams `requests` requests, `concurrency` at a time. Returns their timings."""
    left = iter(range(requests))
    timings = []

    async def worker():
        stream = await connect(server)
        for _ in left:
            # The lengths vary, so that requests do not start and end at the same time.
            timings.append(await stream.send(random_prompt(length), tokens + next(_lengths) % 16, chat))
        stream.transport.close()

    await asyncio.gather(*(worker() for _ in range(concurrency)))
    return timings
