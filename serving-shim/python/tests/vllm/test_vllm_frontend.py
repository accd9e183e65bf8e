"""The API server's side of the plugin: HTTP, requests and their ids, outputs, clients that go away."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from sa_profile.vllm import register

try:
    import uvicorn
except ImportError:
    uvicorn = None
needs_uvicorn = pytest.mark.skipif(uvicorn is None, reason="needs uvicorn")


class Server:
    """An AsyncLLM and an engine core in one process, stepped by a task."""

    def __init__(self):
        register()
        from vllm.v1.core.sched.scheduler import Request, Scheduler
        from vllm.v1.engine.async_llm import AsyncLLM
        from vllm.v1.engine.core import EngineCore
        from vllm.v1.executor.executor import Executor

        self.core = EngineCore(Scheduler(), Executor())
        self.client = AsyncLLM(lambda request: self.core.add_request(Request(request)))
        self.running = True

    async def run(self):
        while self.running:
            outputs, _ = self.core.step_fn()
            for group in outputs.values():
                self.client.output_processor.process_outputs(group.outputs)
            await asyncio.sleep(0.001)

    async def complete(self, request_id, tokens=3):
        return [one async for one in self.client.generate([1, 2, 3, 4], tokens, request_id)]


def serve(scenario):
    """Runs scenario(server) beside the engine's task."""

    async def main():
        server = Server()
        task = asyncio.create_task(server.run(), name="engine loop")
        try:
            await asyncio.wait_for(scenario(server), 20)
        finally:
            server.running = False
            await task

    asyncio.run(main())


def three_requests():
    async def scenario(server):
        outputs = await asyncio.gather(*(server.complete(f"cmpl-{n}-0") for n in range(3)))
        print([len(one) for one in outputs])

    serve(scenario)


def test_both_ids_and_the_counts_are_recorded(record):
    trace = record(three_requests)
    assert trace.stdout == "[3, 3, 3]\n" and trace.stderr == ""
    ids = {f"cmpl-{n}-0-1a2b3c4d": f"cmpl-{n}-0" for n in range(3)}
    for name in ("request.arrived", "OutputProcessor.add_request"):
        assert {one["request_id"]: one["external_id"] for one in trace.args(name)} == ids
    spans = [one["args"] for one in trace.named("request", "X") if "external_id" in one["args"]]
    assert {one["request_id"]: one["external_id"] for one in spans} == ids
    for one in spans:
        assert (one["prompt_tokens"], one["output_tokens"], one["reason"], one["cached_tokens"]) == (4, 3, "length", 0)
    assert sorted(one["external_id"] for one in trace.args("AsyncLLM.generate")) == sorted(ids.values())
    assert len(trace.named("AsyncLLM.add_request")) == 3


def test_each_request_is_one_flow_from_arrival_to_end(record):
    flows = record(three_requests).flows("request")
    for request in {flow for _, flow in flows}:
        phases = [phase for phase, flow in flows if flow == request]
        assert phases == ["s", "t", "t", "f"], phases


def test_the_merge_does_not_link_them_again(record):
    folder = record(three_requests).folder
    merge = [Path(sys.executable).with_name("trace-merge"), "--report", "json", folder]
    done = subprocess.run(merge, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["links"] == {"requests": 0, "events": 0}


def first_output_only():
    async def scenario(server):
        generator = server.client.generate([1], 1000, "cmpl-1-0")
        async for _ in generator:
            break
        await generator.aclose()
        print(server.client.aborted)

    serve(scenario)


def test_a_stream_closed_early_aborts_as_before(record):
    trace = record(first_output_only)
    assert trace.stdout == "['cmpl-1-0-1a2b3c4d']\n"
    front, = [one["args"] for one in trace.named("request", "X") if "external_id" in one["args"]]
    assert front["reason"] == "abort"
    assert trace.one("AsyncLLM.generate")["error"] == "GeneratorExit"
    assert [phase for phase, _ in trace.flows()][-1] == "f"


def cancelled():
    async def scenario(server):
        task = asyncio.create_task(server.complete("cmpl-1-0", 1000))
        await asyncio.sleep(0.05)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            print("cancelled", server.client.aborted)

    serve(scenario)


def test_cancellation_passes_through(record):
    trace = record(cancelled)
    assert trace.stdout == "cancelled ['cmpl-1-0-1a2b3c4d']\n"
    assert trace.one("AsyncLLM.generate")["error"] == "CancelledError"


def engine_dies():
    async def scenario(server):
        def dead(_request):
            raise ConnectionError("the engine is dead")

        server.client.send = dead
        try:
            await server.complete("cmpl-1-0")
        except ConnectionError as error:
            print(error)

    serve(scenario)


def test_a_request_that_no_engine_takes_ends(record):
    trace = record(engine_dies)
    assert trace.stdout == "the engine is dead\n"
    assert trace.one("AsyncLLM.add_request")["error"] == "ConnectionError"
    assert [phase for phase, _ in trace.flows()] == ["s", "f"]
    assert [one["args"]["reason"] for one in trace.named("request", "X")] == ["ConnectionError"]


def stop_string():
    async def scenario(server):
        server.client.output_processor.stop.add("cmpl-1-0-1a2b3c4d")
        print(len(await server.complete("cmpl-1-0", 1000)))
        server.core.abort_requests(["cmpl-1-0-1a2b3c4d"])

    serve(scenario)


def test_a_stop_string_ends_it_in_the_front_end(record):
    trace = record(stop_string)
    reasons = {("external_id" in one["args"]): one["args"]["reason"] for one in trace.named("request", "X")}
    assert reasons == {True: "stop", False: "abort"}


def pooling():
    async def scenario(server):
        async for _ in server.client.encode([1], 1, "pool-1"):
            pass

    serve(scenario)


def test_pooling_requests_are_seen_too(record):
    assert record(pooling).flows()[0][0] == "s"


def bare():
    async def scenario(server):
        print(len(await server.complete("cmpl-1-0")))

    serve(scenario)


def test_missing_hooks_cost_their_events_only(record):
    lacking = "AsyncLLM.encode,AsyncLLM.start_profile,AsyncLLM.stop_profile"
    trace = record(bare, FAKE_VLLM_WITHOUT=lacking)
    assert trace.stdout == "3\n" and len(trace.named("AsyncLLM.generate")) == 1
    assert sorted(line.split()[7] for line in trace.stderr.splitlines()) == [f"{name}:" for name in lacking.split(",")]


def while_off():
    async def scenario(server):
        await server.complete("cmpl-1-0")
        from sa_profile.vllm import frontend

        print(type(server.client.generate([1], 1, "x")).__qualname__, len(frontend._open))

    serve(scenario)


def test_while_off_items_pass_through_nothing(record):
    trace = record(while_off, SA_PROFILE_START="paused")
    assert trace.stdout == "async_generator 0\n"


# HTTP


async def get(app, path="/v1/completions"):
    sent = []

    async def send(message):
        sent.append(message)

    await app({"type": "http", "method": "POST", "path": path}, None, send)
    return sent


def application(server):
    """An ASGI application that streams a completion."""

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200})
        async for _ in server.client.generate([1, 2], 3, "cmpl-1-0"):
            await send({"type": "http.response.body", "body": b"token", "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    return app


def served():
    async def scenario(server):
        config = uvicorn.Config(application(server), lifespan="off", log_config=None)
        config.load()
        print(len(await get(config.loaded_app)))

    serve(scenario)


@needs_uvicorn
def test_http_is_linked_to_the_request(record):
    trace = record(served)
    assert trace.stdout == "5\n"
    http, = trace.named("http.request")
    assert 0 < http["args"].pop("answered_us") < http["dur"]
    assert http["args"] == dict(
        method="POST", path="/v1/completions", status=200, request_ids=["cmpl-1-0-1a2b3c4d"], external_ids=["cmpl-1-0"],
    )
    chunk, = trace.named("http.first_chunk")
    assert http["ts"] < chunk["ts"] < http["ts"] + http["dur"]
    assert chunk["args"]["request_ids"] == ["cmpl-1-0-1a2b3c4d"]
    assert "APIServer" in trace.process_names()


@needs_uvicorn
def test_the_flow_starts_in_the_http_request(record):
    trace = record(served)
    http, = trace.named("http.request")
    start, = [one for one in trace.named("request") if one["ph"] == "s"]
    assert start["tid"] == http["tid"], "on the row of the span that it starts in"
    assert http["ts"] <= start["ts"] < trace.named("AsyncLLM.add_request")[0]["ts"]


def failing_app():
    async def scenario(_server):
        async def app(scope, receive, send):
            raise LookupError("no such route")

        config = uvicorn.Config(app, lifespan="off", log_config=None)
        config.load()
        try:
            await get(config.loaded_app)
        except LookupError as error:
            print(error)

    serve(scenario)


@needs_uvicorn
def test_an_application_that_fails_fails_as_before(record):
    trace = record(failing_app)
    assert "no such route\n" in trace.stdout
    assert trace.one("http.request") == dict(method="POST", path="/v1/completions", status=None, error="LookupError")


def served_by_uvicorn():
    """A whole uvicorn with a socket."""
    import contextlib
    import http.client

    async def scenario(server):
        config = uvicorn.Config(application(server), port=0, lifespan="off", log_config=None, http="httptools", loop="asyncio")
        one = uvicorn.Server(config)
        one.capture_signals = contextlib.nullcontext
        task = asyncio.create_task(one.serve())
        while not one.started:
            await asyncio.sleep(0.01)
        port = one.servers[0].sockets[0].getsockname()[1]

        def ask():
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request("POST", "/v1/completions", body=b"{}")
            text = connection.getresponse().read()
            connection.close()
            return text

        print(await asyncio.to_thread(ask))
        one.should_exit = True
        await task

    serve(scenario)


@needs_uvicorn
def test_time_in_the_event_loop_counts(record):
    pytest.importorskip("httptools")
    trace = record(served_by_uvicorn)
    assert trace.stdout == "b'tokentokentoken'\n"
    http = trace.one("http.request")
    chunk = trace.named("http.first_chunk")[0]
    assert http["waited_us"] > 0 and http["request_ids"] == ["cmpl-1-0-1a2b3c4d"]
    since_began = chunk["ts"] - trace.named("http.request")[0]["ts"]
    assert http["waited_us"] < chunk["args"]["elapsed_us"] < since_began + http["waited_us"] + 100


def unread_in_the_kernel():
    """A request in a socket's buffer that nobody reads for a while, and connections that cannot tell."""
    import socket
    import time

    from sa_profile.vllm.unread import arrival_ns

    class Transport:
        def __init__(self, connection):
            self.connection = connection

        def get_extra_info(self, name):
            return self.connection if name == "socket" else None

    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()
    before = time.monotonic_ns()
    client.sendall(b"GET / HTTP/1.1")
    after = time.monotonic_ns()
    time.sleep(0.3)
    arrival = arrival_ns(Transport(server), time.monotonic_ns())
    print(before - 12e6 <= arrival <= after + 12e6, server.recv(3), arrival_ns(None, 7))
    one, other = socket.socketpair()
    print(arrival_ns(Transport(one), 7))
    for each in (one, other, client, server, listener):
        each.close()


def test_time_unread_in_the_kernel_is_known(record):
    assert record(unread_in_the_kernel).stdout == "True b'GET' 7\n7\n"


@pytest.mark.parametrize(
    ("now", "tick", "unread", "awake", "answered", "expected"),
    [
        (103, 100, 0, 0.2, 0, 102.9),  # came in this tick, and woke the reader
        (103, 100, 0, 2, 0, 102),  # in this tick, while somebody was busy
        (103, 100, 0, 50, 0, 101.5),
        (100.5, 100, 4, 0.2, 0, 100),  # in the last one, which has just ended
        (100.5, 100, 4, 2.5, 0, 99),
        (103, 100, 4, 50, 0, 98),  # in the last one, and somebody was busy since
        (103, 100, 4, 5, 0, 99),
        (103, 100, 40, 50, 0, 62),
        (103, 100, 40, 40, 0, 63.5),
        (103, 100, 40, 1, 0, 62),  # the reader slept, but not for want of data
        (103, 100, 0, 50, 102, 102.5),  # in this tick, after the last answer
        (103, 100, 4, 50, 99, 99.5),
        (103, 100, 4, 50, 102, 98),  # the client has not waited for the answer
        (103, 100, 39, 50, 0, 62),  # a millisecond cut off
        (103, 100, 700_000_000, 50, 0, 103),  # nonsense
        (103, None, 4, 0.2, 0, 103),  # nobody knows when it ticks
        (103, None, 8, 50, 0, 95),
    ],
)
def test_an_arrival_is_placed_in_the_tick_in_which_it_came(now, tick, unread, awake, answered, expected):
    from sa_profile.vllm.unread import placed

    now, tick, unread, awake, answered = (None if ms is None else int(ms * 1e6) for ms in (now, tick, unread, awake, answered))
    assert placed(now, tick, 4_000_000, unread, awake, answered) == expected * 1_000_000


class Thread:
    """The counts that a kernel keeps of a thread."""

    def __init__(self):
        self.used = self.delayed = self.sleeps = 0

    def awake(self):
        from sa_profile.vllm.awake import Awake

        return Awake(lambda: self.used, self.delayed_ns, lambda: self.sleeps)

    def delayed_ns(self):
        if self.delayed is None:
            raise OSError("too many open files")
        return self.delayed

    def went_on(self, used, delayed=0, sleeps=0):
        self.used += used
        self.delayed += delayed
        self.sleeps += sleeps


def test_a_stretch_goes_on_until_the_thread_sleeps():
    from sa_profile.vllm.awake import ALWAYS_NS

    thread = Thread()
    awake = thread.awake()
    assert awake.most_ns() == ALWAYS_NS, "nothing is known of the time before"
    thread.went_on(used=5, sleeps=1)
    assert awake.most_ns() == 5
    thread.went_on(used=2, delayed=7)
    assert awake.most_ns() == 14, "it waited for a core, and has not slept since"
    assert awake.most_ns() == 14, "a look is no sleep: what lies unread lies there as long as before"
    thread.went_on(used=3, sleeps=2)
    assert awake.most_ns() == 3


def test_a_stretch_that_nobody_counts_is_not_known():
    from sa_profile.vllm.awake import ALWAYS_NS

    thread = Thread()
    awake = thread.awake()
    awake.look()
    thread.went_on(used=5, sleeps=1)
    thread.delayed = None
    assert awake.most_ns() == ALWAYS_NS
    thread.delayed = 900
    assert awake.most_ns() == ALWAYS_NS, "from when on, nobody knows"
    thread.went_on(used=4, sleeps=1)
    assert awake.most_ns() == 4


def test_a_stretch_is_of_one_thread():
    import threading

    from sa_profile.vllm.awake import ALWAYS_NS

    thread = Thread()
    awake = thread.awake()
    awake.look()
    thread.went_on(used=5, sleeps=1)
    found = []
    other = threading.Thread(target=lambda: found.append(awake.most_ns()))
    other.start()
    other.join()
    assert found == [ALWAYS_NS] and awake.most_ns() == ALWAYS_NS


def test_looks_keep_no_file_open():
    import os
    import threading

    from sa_profile.vllm.awake import Awake

    awake, before = Awake(), len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        thread = threading.Thread(target=awake.look)
        thread.start()
        thread.join()
        awake.look()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_stretches_of_this_machine():
    import time

    from sa_profile.vllm.awake import ALWAYS_NS, Awake

    awake = Awake()
    awake.look()
    time.sleep(0.2)
    asleep = awake.most_ns()
    if asleep == ALWAYS_NS:
        pytest.skip("SKIPPED the stretches of this machine: it does not count how long a thread waits for a core")
    assert asleep < 100_000_000
    began, used = time.monotonic_ns(), time.thread_time_ns()
    while time.thread_time_ns() < used + 200_000_000:
        pass
    most = awake.most_ns()
    assert 200_000_000 <= most <= time.monotonic_ns() - began + asleep + 10_000_000


def looks_of_an_exchange():
    import asyncio

    from sa_profile.vllm import http

    looks = []
    http.AWAKE = type("Looks", (), {"look": lambda self: looks.append(self)})()

    async def answer():
        scope = {}
        exchange = http.Exchange(scope)
        exchange.sent({"type": "http.response.start", "status": 200})
        exchange.sent({"type": "http.response.body", "body": b"a", "more_body": True})
        print(len(looks))
        exchange.sent({"type": "http.response.body", "body": b""})
        print(len(looks), scope[http.ANSWERED] == exchange.ended_ns)

    asyncio.run(answer())


def test_a_stretch_is_looked_at_when_the_next_request_may_come(record):
    assert record(looks_of_an_exchange).stdout == "0\n1 True\n"


def arrivals_while_the_reader_was_busy():
    """Four requests sent together, which a busy thread reads one after another."""
    import socket
    import time
    from random import Random

    from sa_profile.vllm.ticks import TICKS
    from sa_profile.vllm.unread import arrival_ns

    class Transport:
        def __init__(self, connection):
            self.get_extra_info = lambda _name: connection

    def work(ticks):
        since, until = TICKS.glance(), time.monotonic_ns() + ticks * TICKS.length_ns
        while time.monotonic_ns() < until:
            pass
        TICKS.worked(since)

    random = Random(3)

    listener = socket.create_server(("127.0.0.1", 0))
    clients = [socket.create_connection(listener.getsockname()) for _ in range(4)]
    servers = [listener.accept()[0] for _ in clients]
    off = [[] for _ in clients]
    for turn in range(60):
        time.sleep(0.003)
        work(3 * random.random())
        sent = []
        for client in clients:
            client.sendall(b"GET / HTTP/1.1")
            sent.append(time.monotonic_ns())
        for _ in range(5):  # the server is busy for some ticks
            work(1.3)
        for at, server in enumerate(servers):
            found = arrival_ns(Transport(server), time.monotonic_ns())
            if turn >= 10:
                off[at].append((found - sent[at]) / TICKS.length_ns)
            server.recv(100)
    print(*(sorted(one)[len(one) // 2] for one in off))


def test_requests_that_lay_unread_together_are_placed_alike(record):
    from sa_profile.vllm.ticks import TICKS

    if TICKS.length_ns == 0:
        pytest.skip("SKIPPED requests that lay unread together: this machine has no coarse clock")
    medians = [float(one) for one in record(arrivals_while_the_reader_was_busy).stdout.split()]
    assert all(abs(one) < 0.3 for one in medians), f"of a tick: {medians}"


@pytest.mark.parametrize("length", [1_000_000, 4_000_000, 10_000_000])
@pytest.mark.parametrize("stretch", [0.02, 0.3, 1.2])
def test_ticks_are_learned_from_stretches_of_work(length, stretch):
    from random import Random

    from sa_profile.vllm.ticks import FRESH_NS, Ticks

    random, clock, distance = Random(5), [123_456_789], 0.7 * length
    # The ticks are at whole multiples of their length.
    ticks = Ticks(length, lambda: int(clock[0] // length * length - distance), lambda: clock[0])
    assert ticks.last_ns(clock[0]) is None
    off = []
    for number in range(3000):
        since = ticks.glance()
        clock[0] += int(random.random() * stretch * length)
        ticks.worked(since)
        clock[0] += int(random.random() * length)
        last = ticks.last_ns(clock[0])
        if number > 1000 and last is not None:
            off.append(abs(last - clock[0] // length * length))
    assert len(off) > 500
    now = clock[0]
    clock[0] += 7 * length  # this thread waits for a core
    assert now - 2 * length <= (ticks.last_ns(now) or now) <= now
    assert sorted(off)[len(off) * 99 // 100] < length / 8, "a hundredth may be a whole tick off, at its begin"
    clock[0] += 3 * FRESH_NS
    assert ticks.last_ns(clock[0]) is None


def test_ticks_of_this_machine():
    """The tick that is named is not after now, and not two ticks ago."""
    import time

    from sa_profile.vllm.ticks import TICKS, Ticks

    if TICKS.length_ns == 0:
        pytest.skip("SKIPPED the ticks of this machine: it has no coarse clock")
    ticks = Ticks(TICKS.length_ns)
    until = time.monotonic_ns() + 5_000_000_000
    found = 0
    while found < 50 and time.monotonic_ns() < until:
        since, end = ticks.glance(), time.monotonic_ns() + ticks.length_ns // 3
        while time.monotonic_ns() < end:  # work
            pass
        ticks.worked(since)
        now = time.monotonic_ns()
        last = ticks.last_ns(now)
        if last is not None:
            found += 1
            assert 0 <= now - last <= 2 * ticks.length_ns
    assert found == 50


def test_no_coarse_clock_no_ticks():
    from sa_profile.vllm.ticks import Ticks
    from sa_profile.vllm.unread import placed

    ticks = Ticks(0, lambda: 0)
    ticks.worked(ticks.glance())
    assert ticks.last_ns(5) is None and placed(5, None, 0, 40_000_000, 0) == 5
