"""An engine with as many requests as a server may have."""


def test_an_engine_with_sixteen_thousand_requests(program):
    out = program.run(
        """
        import asyncio

        REQUESTS, TOKENS = 16_384, 4

        def resident_mib():
            with open("/proc/self/status") as status:
                (kib,) = (line.split()[1] for line in status if line.startswith("RssAnon:"))
            return int(kib) / 1024

        async def generate(n):
            with sa_profile.span("generate", cat="request", request_id=f"req-{n}"):
                sa_profile.instant("queued", request_id=f"req-{n}")
                for _ in range(TOKENS):
                    with sa_profile.span("wait"):
                        await asyncio.sleep(0)

        async def main():
            tasks = [asyncio.create_task(generate(n)) for n in range(REQUESTS)]
            await asyncio.sleep(0)
            before = resident_mib()
            await asyncio.gather(*tasks)
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
