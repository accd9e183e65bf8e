"""``@track``: every kind of function, and values and exceptions that pass through it."""

import asyncio

import sa_profile


def test_every_kind_of_function(program):
    trace = program.record(
        """
        import asyncio

        @sa_profile.track
        def plain(a):
            return a

        @sa_profile.track(name="named", cat="engine", metadata={"level": "x", "name": 1})
        async def awaited():
            await asyncio.sleep(0)

        @sa_profile.track
        def items():
            sent = yield 1
            assert sent == "sent"
            yield 2
            return "returned"

        @sa_profile.track
        async def stream(n):
            for item in range(n):
                await asyncio.sleep(0)
                yield item

        assert plain(3) == 3
        asyncio.run(awaited())

        def consume():
            result = yield from items()
            assert result == "returned"

        consumer = consume()
        assert next(consumer) == 1
        with sa_profile.span("consumer"):
            assert consumer.send("sent") == 2
            assert list(consumer) == []

        async def main():
            assert [item async for item in stream(3)] == [0, 1, 2]

        asyncio.run(main())
        """
    )
    assert trace.counts() == {"plain": 1, "named": 1, "items": 1, "stream": 1, "consumer": 1}
    assert trace.span("named")["cat"] == "engine" and trace.args("named") == {"level": "x", "name": 1}
    assert trace.args("items") == {"items": 2} and trace.args("stream") == {"items": 3}
    assert [event["args"] for event in trace.instants("stream.item")] == [{"index": n} for n in range(3)]
    for name in ("items", "stream"):
        span = trace.span(name)
        assert trace.track_name(span) == "stream (async)"  # the second generator used this lane last
        assert {(event["pid"], event["tid"]) for event in trace.instants(f"{name}.item")} == {(span["pid"], span["tid"])}
    assert trace.overlaps() == []


def test_every_way_to_end_is_recorded(program):
    trace = program.record(
        """
        import asyncio

        @sa_profile.track
        def fails():
            raise KeyError

        @sa_profile.track
        def items_fail():
            yield 1
            raise KeyError

        @sa_profile.track
        def items_closed():
            try:
                while True:
                    yield 1
            finally:
                sa_profile.instant("cleaned")

        @sa_profile.track
        async def stream_fails():
            yield 1
            raise KeyError

        @sa_profile.track
        async def stream_closed():
            while True:
                yield 1

        def expect(act):
            try:
                act()
            except KeyError:
                return
            raise AssertionError

        async def consume(stream):
            async for _ in stream:
                pass

        async def main():
            stream = stream_closed()
            await anext(stream)
            await asyncio.create_task(stream.aclose())

        expect(fails)
        expect(lambda: list(items_fail()))
        generator = items_closed()
        next(generator)
        generator.close()
        expect(lambda: asyncio.run(consume(stream_fails())))
        asyncio.run(main())
        """
    )
    assert trace.args("fails") == {"error": "KeyError"}
    assert trace.args("items_fail") == trace.args("stream_fails") == {"items": 1, "error": "KeyError"}
    assert trace.args("items_closed") == trace.args("stream_closed") == {"items": 1, "closed": True}
    assert len(trace.instants("cleaned")) == 1


def test_inputs_and_outputs_are_optional_and_truncated(program):
    trace = program.record(
        """
        class Tensor:
            def __repr__(self):
                raise RuntimeError("printed")

        @sa_profile.track
        def silent(a):
            return a

        @sa_profile.track(inputs=True, outputs=True, metadata={"m": 1}, max_chars=4)
        def told(a, *rest, key=None):
            a.append("late")
            return {"text": "y" * 100, "tensor": Tensor()}

        @sa_profile.track(outputs=True)
        def items():
            yield Tensor()
            yield "x"

        silent("secret")
        told(list(range(100)), Tensor(), key="abcdefgh")
        list(items())
        """
    )
    assert trace.span("silent").get("args", {}) == {}
    told = trace.args("told")
    assert told["m"] == 1
    assert told["inputs"] == {"a": [*range(16), "…[+84]"], "rest": ["Tensor"], "key": "abcd…[+4]"}
    assert told["output"] == {"text": "yyyy…[+96]", "tensor": "Tensor"}
    assert [event["args"]["item"] for event in trace.instants("items.item")] == ["Tensor", "x"]


def test_a_thrown_error_reaches_the_generator():
    @sa_profile.track
    def items():
        try:
            yield 1
        except KeyError as error:
            yield error

    @sa_profile.track
    async def stream():
        try:
            yield 1
        except KeyError as error:
            yield error

    async def main():
        generator = stream()
        return await anext(generator), await generator.athrow(thrown)

    thrown, generator = KeyError("k"), items()
    assert (next(generator), generator.throw(thrown)) == asyncio.run(main()) == (1, thrown)


def test_odd_containers_are_truncated_and_never_fail(program):
    trace = program.record(
        """
        @sa_profile.track(inputs=True, outputs=True)
        def function(a):
            return {(1, 2): 3, None: {frozenset(): 1}}

        assert function({"d": {(1, 2): 3}}) == {(1, 2): 3, None: {frozenset(): 1}}
        """
    )
    assert trace.args("function") == {"inputs": {"a": {"d": {"tuple": 3}}}, "output": {"tuple": 3, "None": {"frozenset": 1}}}
