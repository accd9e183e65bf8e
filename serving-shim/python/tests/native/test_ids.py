"""Ids of requests, flows and lanes may be str, int or UUID objects. Errors about numbers that do not fit name the argument."""

import uuid

import pytest

import sa_profile


def test_ids_may_be_texts_ints_and_uuids(program):
    trace = program.record(
        """
        import uuid
        one, open = uuid.UUID(int=7), []
        for number, id in enumerate(("cmpl-1", 12, one)):
            with sa_profile.request(id) as request:
                assert request.request_id == str(id)
            with sa_profile.span("from"):
                sa_profile.flow(f"flow-{number}", id, "start")
            with sa_profile.span("to"):
                sa_profile.flow(f"flow-{number}", id, "end")
            open.append(sa_profile.async_span("work", lane=id))
        sa_profile.instant("told", request_id=one, ids=[one, 3])
        """
    )
    one = str(uuid.UUID(int=7))
    assert [span["args"]["request_id"] for span in trace.spans("request")] == ["cmpl-1", "12", one]
    assert {trace.track_name(span) for span in trace.spans("work")} == {f"{lane} (async)" for lane in ("cmpl-1", "12", one)}
    (told,) = trace.instants("told")
    assert told["args"] == {"request_id": one, "ids": [one, 3]}
    arrows = sorted((event["name"], event["ph"]) for event in trace.events if event["ph"] in "sf")
    drawn = [(f"flow-{n}", ph) for n in range(3) for ph in "fs"]
    # A request with the same text as id gets a flow too: the merge links its span to that flow.
    assert arrows == [*drawn, *[("request", ph) for ph in "ffss"]]


def test_equivalent_ids(program):
    trace = program.record(
        """
        import uuid

        class Number:  # like numpy's integers
            def __index__(self):
                return 7

        class Text(str):
            def __index__(self):
                return 7

        for start, end in [(uuid.UUID(int=7), str(uuid.UUID(int=7))), (Number(), 7), (Text("seven"), "seven")]:
            with sa_profile.span("from"):
                sa_profile.flow("flow", start, "start")
            with sa_profile.span("to"):
                sa_profile.flow("flow", end, "end")
        with sa_profile.request(Number()) as request:
            assert request.request_id == "7"
        open = sa_profile.async_span("work", lane=Number())
        """
    )
    ids = {phase: [event["id"] for event in trace.events if event["ph"] == phase] for phase in "sf"}
    assert ids["s"] == ids["f"] and len(set(ids["s"])) == 3
    assert trace.args("request") == {"request_id": "7"}
    assert trace.track_name(trace.span("work")) == "7 (async)"


@pytest.mark.parametrize("raised", [KeyboardInterrupt, MemoryError, ZeroDivisionError])
def test_exceptions_of_an_index_are_passed_on(raised):
    class Number:
        def __index__(self):
            raise raised

    for call in (lambda id: sa_profile.flow("f", id, "start"), sa_profile.request, lambda id: sa_profile.async_span("s", lane=id)):
        with pytest.raises(raised):
            call(Number())


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: sa_profile.flow("f", 2.5, "start"), TypeError, "^id: expected a str, an int or a UUID, found .*float"),
        (lambda: sa_profile.flow("f", -1, "start"), ValueError, "^id: expected an int from 0 to .*, found -1"),
        (lambda: sa_profile.flow("f", 1, "middle"), ValueError, "^phase: expected one of start, step, end, found"),
        (lambda: sa_profile.flow("f", 1, "start", ts_ns=-5), TypeError, "^ts_ns: expected an int from 0 to .*, found -5"),
        (lambda: sa_profile.request(None), TypeError, "^request_id: expected a str, an int or a UUID"),
        (lambda: sa_profile.async_span("a", lane=b"x"), TypeError, "^lane: expected a str, an int or a UUID"),
        (lambda: sa_profile.request("r").instant("i", ts_ns=2**64), TypeError, "^ts_ns: expected an int"),
        (lambda: sa_profile.duration("d", dur_ns="5"), TypeError, "^dur_ns: expected an int from -.*, found '5'"),
        (lambda: sa_profile.duration("d", dur_ns=5, start_ns=-1), TypeError, "^start_ns: expected an int from 0"),
        (lambda: sa_profile.span(3), TypeError, "^name: expected a str"),
        (lambda: sa_profile.span("s", cat=3), TypeError, "^cat: expected a str"),
        (lambda: sa_profile.span("s", level="all"), ValueError, "^level: expected one of e2e, kernel, verbose"),
        (lambda: sa_profile.instant("i", level="loud"), ValueError, "^level: expected one of .*, found \"loud\""),
        (lambda: sa_profile.async_span("a", level="loud"), ValueError, "^level: expected one of"),
        (lambda: sa_profile.is_enabled("all"), ValueError, "^level: expected one of"),
        (lambda: sa_profile.begin("s", level=3), TypeError, "^level: expected a str"),
        (lambda: sa_profile.launch_timed("k", stream=-1), TypeError, "^stream: expected an int from 0"),
        (lambda: sa_profile.launch_timed("k", grid=2**32), TypeError, "^grid: expected an int from 0 to 4294967295"),
        (lambda: sa_profile.launch_walls("k", host_wall_ns=-1, device_wall_ns=0), TypeError, "^host_wall_ns: "),
        (lambda: sa_profile.track(max_chars="x")(len), TypeError, "^max_chars: expected an int, found str"),
        (lambda: sa_profile.track(metadata=3)(len), TypeError, "^metadata: expected a dict, found int"),
        (lambda: sa_profile.track(3), TypeError, "expected a function to track, found int"),
        (lambda: sa_profile.track(name=3)(len), TypeError, "^name: expected a str"),
        (lambda: sa_profile.recording("x", levels=["all"]), ValueError, "^levels: unknown level 'all', expected e2e"),
        (lambda: sa_profile.start("x", levels="all"), ValueError, "^levels: unknown level 'all', expected e2e"),
    ],
)
def test_errors_name_the_argument(call, error, words):
    with pytest.raises(error, match=words):
        call()
