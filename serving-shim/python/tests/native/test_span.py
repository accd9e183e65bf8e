"""Spans on threads: nesting, sharing, args, decorators."""


def test_a_span_nests_and_carries_its_args(program):
    trace = program.record(
        """
        outer = sa_profile.span("outer", cat="c", level="kernel", a=1, b="x\\n\\u00e9", c=[1, 2.5, None, True], d={"k": (1,)})
        with outer:
            try:
                with sa_profile.span("fails", a=1):
                    raise KeyError("k")
            except KeyError:
                pass
            outer.arg(late=7)
        """
    )
    outer, fails = trace.span("outer"), trace.span("fails")
    assert outer["cat"] == "c" and fails["cat"] == "e2e"
    assert outer["args"] == {"a": 1, "b": "x\né", "c": [1, 2.5, None, True], "d": {"k": [1]}, "late": 7}
    assert fails["args"] == {"a": 1, "error": "KeyError"}
    assert trace.is_within(fails, outer)
    assert trace.track_name(outer) == "MainThread"


def test_one_object_is_shared_by_recursion_and_threads(program):
    trace = program.record(
        """
        import threading
        SPAN = sa_profile.span("shared")

        def recurse(depth):
            with SPAN:
                SPAN.arg(depth=depth)
                if depth:
                    recurse(depth - 1)

        def work():
            for _ in range(200):
                recurse(4)

        threads = [threading.Thread(target=work, name=f"worker-{n}") for n in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        """
    )
    assert len(trace.spans("shared")) == 4 * 200 * 5
    assert trace.overlaps() == []
    rows = trace.tracks()
    assert sorted(trace.track_name(spans[0]) for spans in rows.values()) == [f"worker-{n}" for n in range(4)]
    for spans in rows.values():
        assert [span["args"]["depth"] for span in spans] == [4, 3, 2, 1, 0] * 200


def test_begin_and_end_pair_up(program):
    trace = program.record(
        """
        sa_profile.begin("outer", a=1)
        sa_profile.begin("inner")
        sa_profile.end(result=2)
        sa_profile.end()
        """
    )
    assert trace.args("inner") == {"result": 2} and trace.args("outer") == {"a": 1}
    assert trace.is_within(trace.span("inner"), trace.span("outer"))


def test_blocks_in_generators_end_in_any_order(program):
    trace = program.record(
        """
        def block(number):
            with sa_profile.span(f"block-{number}", number=number):
                yield

        blocks = [block(number) for number in range(50)]
        [next(one) for one in blocks]
        for one in (*blocks[::2], *blocks[1::2]):
            next(one, None)
        """
    )
    assert [trace.args(f"block-{number}") for number in range(50)] == [{"number": number} for number in range(50)]


def test_anything_can_be_an_arg(program):
    trace = program.record(
        """
        class Tensor:
            def __repr__(self):
                raise RuntimeError("printed")
            __str__ = __int__ = __float__ = __index__ = __iter__ = __len__ = __bool__ = __repr__

        class Text(str):
            pass

        with sa_profile.span("all", tensor=Tensor(), kind=Tensor, text=Text("t"), big=2**70, larger=2**200, low=-2**63, high=2**64 - 1,
                             nan=float("nan"), inf=float("-inf"), surrogate="\\ud800x", empty="", long="y" * 100_000,
                             many=list(range(5000)), keys={1: "one", None: 2, (1, 2): 3}):
            pass
        deep = current = []
        for _ in range(100):
            current.append([])
            current = current[0]
        loop = []
        loop.append(loop)
        with sa_profile.span("deep", deep=deep, loop=loop):
            pass
        """
    )
    args = trace.args("all")
    assert (args["tensor"], args["kind"], args["text"]) == ("Tensor", "type", "t")
    assert (args["big"], args["low"], args["high"]) == (str(2**70), -(2**63), 2**64 - 1)
    assert args["larger"] == "an int of over 128 bits"
    assert args["nan"] is None and args["inf"] is None and args["empty"] == ""
    assert args["surrogate"].endswith("x") and len(args["long"]) < 20_000 and args["long"].startswith("yyyy")
    assert args["many"][:3] == [0, 1, 2] and args["many"][-1] == "…[+3976 more]"
    assert args["keys"] == {"1": "one", "null": 2, "[1,2]": 3}
    assert "…" in str(trace.args("deep")["deep"]) and "…" in str(trace.args("deep")["loop"])


def test_each_truncated_argument_is_counted_once(program):
    trace = program.record(
        """
        for value in ["y" * 20_000, list(range(2000)), {n: n for n in range(2000)}, [[[[[[[[[[1]]]]]]]]]], [["x" * 10_000] for _ in range(30)]]:
            with sa_profile.span("cut", value=value):
                pass
        loop = []
        loop += [loop] * 1024
        for value in (loop, [list(range(1000))] * 1000):  # both contain very many elements
            with sa_profile.span("cut", value=value, after=1):
                pass
        sa_profile.duration("cut", dur_ns=1, text="y" * 20_000, list=[1])
        with sa_profile.span("whole", value=[[[[[[[1]]]]]]], text="y" * 16_384, list=list(range(1024)), dict={n: n for n in range(1024)}):
            pass
        """
    )
    losses = [loss["args"] for loss in trace.instants("sa_loss")]
    assert all(loss["cause"] == "cut" for loss in losses)
    assert len(trace.spans("cut")) == sum(loss["events"] for loss in losses) == 8, "one for each argument"
    assert "…" not in str(trace.args("whole"))


def test_a_span_decorates_functions(program):
    trace = program.record(
        """
        import asyncio

        @sa_profile.span("plain", cat="c")
        def plain(a, *, b):
            "doc"
            return a + b

        @sa_profile.span("awaited")
        async def awaited():
            await asyncio.sleep(0)
            return 5

        assert plain(1, b=2) == 3 and plain.__doc__ == "doc" and plain.__name__ == "plain"
        assert asyncio.run(awaited()) == 5
        """
    )
    assert trace.counts() == {"plain": 1, "awaited": 1}


def test_instants_counters_flows_and_durations(program):
    trace = program.record(
        """
        with sa_profile.span("around"):
            sa_profile.instant("point", cat="c", a=1)
            sa_profile.counter("requests", running=3, waiting=1.5)
            sa_profile.flow("request", "req-1", "start")
            sa_profile.flow("local", 7, "end")
        sa_profile.duration("told", dur_ns=1000, start_ns=sa_profile.now_ns() - 5000, a=2)
        """
    )
    (point,) = trace.instants("point")
    assert point["args"] == {"a": 1} and point["cat"] == "c"
    (counter,) = [event for event in trace.events if event["ph"] == "C" and event["name"] == "requests"]
    assert counter["args"] == {"running": 3, "waiting": 1.5}
    flows = [event["name"] for event in trace.events if event["ph"] in "stf"]
    assert sorted(flows) == ["local", "request"]
    assert round(trace.span("told")["dur"] * 1000) == 1000 and trace.args("told") == {"a": 2}


def test_nothing_is_written_before_the_first_event(program):
    program.run("import sa_profile; sa_profile.span('made'); assert sa_profile.is_enabled()")
    assert not program.directory.exists()
