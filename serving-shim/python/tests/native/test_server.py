"""Servers: uvicorn on asyncio's and uvloop's loops, and an engine with as many requests as a server may have."""

import pytest

SERVER = """
    import asyncio, json
    import uvicorn

    REQUEST, TOKEN = sa_profile.span("http", cat="request"), sa_profile.span("token")

    @sa_profile.track
    async def stream(n):
        for token in range(5):
            with TOKEN:
                await asyncio.sleep(0.001)
            yield b"x"

    async def app(scope, receive, send):
        if scope["type"] != "http":
            return
        with REQUEST:
            REQUEST.arg(path=scope["path"])
            await send({"type": "http.response.start", "status": 200, "headers": []})
            async for part in stream(5):
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

    async def get(port, n):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /{n} HTTP/1.1\\r\\nhost: x\\r\\nconnection: close\\r\\n\\r\\n".encode())
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        assert answer.startswith(b"HTTP/1.1 200"), answer

    async def main():
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", lifespan="off"))
        serving = asyncio.create_task(server.serve(), name="server")
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        await asyncio.gather(*(get(port, n) for n in range(64)))
        server.should_exit = True
        await serving

    LOOP
"""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_uvicorn(program, loop):
    pytest.importorskip("uvicorn", reason="SKIPPED uvicorn: not installed")
    pytest.importorskip(loop, reason=f"SKIPPED {loop}: not installed")
    run = "asyncio.run(main())" if loop == "asyncio" else "import uvloop; uvloop.run(main())"
    trace = program.record(SERVER.replace("LOOP", run))
    assert trace.counts() == {"http": 64, "token": 320, "stream": 64}
    assert sorted(span["args"]["path"] for span in trace.spans("http")) == sorted(f"/{n}" for n in range(64))
    assert trace.overlaps() == []
    requests = {(span["pid"], span["tid"]): span for span in trace.spans("http")}
    assert all((span["pid"], span["tid"]) in requests for span in trace.spans("token"))


def test_an_engine_with_sixteen_thousand_requests(program):
    out = program.run(
        """
        import asyncio

        REQUESTS, TOKENS = 16_384, 4

        def resident_mib():
            with open("/proc/self/status") as status:
                (kib,) = (line.split()[1] for line in status if line.startswith("RssAnon:"))
            return int(kib) / 1024

        class Engine:
            def __init__(self):
                self.waiting, self.queues = [], {}

            async def run(self):
                step = sa_profile.span("step", cat="engine")
                while self.queues:
                    with step:
                        for n, queue in list(self.queues.items()):
                            queue.put_nowait(n)
                    await asyncio.sleep(0)

        engine = Engine()

        async def generate(n):
            queue = engine.queues[n] = asyncio.Queue()
            with sa_profile.span("generate", cat="request", request_id=f"req-{n}"):
                sa_profile.instant("queued", request_id=f"req-{n}")
                for _ in range(TOKENS):
                    with sa_profile.span("wait"):
                        await queue.get()
            del engine.queues[n]

        async def main():
            async with asyncio.TaskGroup() as group:
                for n in range(REQUESTS):
                    group.create_task(generate(n))
                await asyncio.sleep(0)
                before = resident_mib()
                group.create_task(engine.run())
            return before

        grown = resident_mib() - asyncio.run(main())
        sa_profile.flush()
        print(sa_profile.dropped(), f"{grown:.0f}")
        """
    )
    dropped, grown_mib = out.split()
    assert dropped == "0" and int(grown_mib) < 64
    trace = program.merge()
    counts = trace.counts()
    assert (counts["generate"], counts["wait"]) == (16_384, 65_536)
    assert len(trace.instants("queued")) == 16_384
    assert {span["args"]["request_id"] for span in trace.spans("generate")} == {f"req-{n}" for n in range(16_384)}
    assert trace.overlaps() == []
