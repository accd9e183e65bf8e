"""A request and its answer."""

import asyncio
import builtins
import gc
import os
import time
import weakref
from types import SimpleNamespace

import pytest

import sa_profile
from sa_profile._http import asgi
from sa_profile._sa_profile import message_begin


class Protocol:
    """The protocol of a connection. It has a scope once a request has begun."""

    def __init__(self, transport):
        self.transport = transport


def transport(connection):
    return SimpleNamespace(get_extra_info=lambda name: connection if name == "socket" else None)


def requests_of_odd_connections():
    sa_profile.instant("begun")
    no_tcp = SimpleNamespace(fileno=lambda: -1)  # the time of its data is unknown
    for one in (None, transport(None), transport(no_tcp), object()):
        protocol, before = Protocol(one), time.monotonic_ns()
        leave = message_begin(protocol)
        protocol.scope = {"type": "http"}
        leave(None, None)
        ns, uncertainty_ns = protocol.scope["sa_profile.received"]
        print(before <= ns <= time.monotonic_ns(), uncertainty_ns)


def test_requests_of_other_connections_arrive_when_they_are_read(record):
    done = record(requests_of_odd_connections)
    assert (done.stdout, done.stderr) == ("True 0\n" * 4, "")


def paused():
    print(message_begin(Protocol(None)))


def test_arrivals_are_not_observed_while_nothing_is_recorded(record):
    assert record(paused, SA_PROFILE_START="paused").stdout == "None\n"


def run(app, scope, receive=None):
    """Makes the application answer a request, and returns what it sent."""
    sa_profile.instant("begun")

    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(asgi.HttpSpans(app, holds_spans=False)({"type": "http", **scope}, receive, send))
    return sent


def an_answer_in_parts():
    scope = {}

    async def app(own, _receive, send):
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        scope["before"] = own.get("sa_profile.answered_ns")
        await send({"type": "http.response.body", "body": b""})
        scope["after"] = own["sa_profile.answered_ns"]

    began_ns = sa_profile.now_ns()
    print(len(run(app, {})), scope["before"], began_ns < scope["after"] < sa_profile.now_ns())


def test_the_next_request_of_a_connection_knows_when_the_answer_ended(record):
    trace = record(an_answer_in_parts)
    assert trace.stdout == "3 None True\n" and trace.stderr == ""
    assert trace.one("http.first_chunk")["elapsed_us"] > 0 and trace.one("http.request")["answered_us"] > 0


def failed_exchanges():
    for status, method in ((500, "POST"), (404, "POST"), (503, "GET")):  # the last is /health after the engine has died

        async def app(_scope, _receive, send, status=status):
            await send({"type": "http.response.start", "status": status})

        run(app, {"method": method})
    print(os.getpid())


def test_issue_47_a_failed_request_counts_even_if_no_engine_got_it(record):
    """The report counts requests by their ids."""
    trace = record(failed_exchanges)
    found = [(one["status"], one.get("reason"), one.get("request_id")) for one in trace.args("http.request")]
    assert found == [(500, "error", f"http-{int(trace.stdout)}-1"), (404, None, None), (503, "error", None)]


def odd_messages():
    """Runs an application that follows no rules. Its messages are sent anyway."""

    async def app(_scope, _receive, send):
        await send({})
        await send({"type": "http.response.start", "status": "200 OK"})
        await send({"type": "http.response.body", "body": bytearray(b"a")})
        await send(7)

    print(len(run(app, {"headers": [3, (b"x-request-id",)]})))


def test_odd_messages_are_passed_on(record):
    trace = record(odd_messages)
    assert trace.stdout == "4\n" and trace.stderr.startswith("sa_profile: Exchange.send failed, its events are missing: ")
    assert trace.one("http.request")["status"] is None


def a_header():
    async def app(_scope, _receive, _send):
        pass

    for headers in ([(b"host", b"a"), (b"x-request-id", b"abc\xff" + b"d" * 300)], [(b"host", b"a")], None):
        run(app, {} if headers is None else {"headers": headers})


def test_the_id_that_a_client_sent_is_on_its_span(record):
    found = [one.get("x_request_id") for one in record(a_header).args("http.request")]
    assert found == ["abc\u00ff" + "d" * 196, None, None]


def refused_by(kind, more):
    def part(text):
        return getattr(builtins, kind)(text + b" " * more)

    async def app(_scope, _receive, send):
        await send({"type": "http.response.start", "status": 400})
        await send({"type": "http.response.body", "body": part(b'{"error": '), "more_body": True})
        await send({"type": "http.response.body", "body": None, "more_body": True})
        await send({"type": "http.response.body", "body": part(b'"no"}')})

    run(app, {})


@pytest.mark.parametrize(("kind", "more", "message"), [("bytes", 0, "no"), ("memoryview", 0, "no"), ("bytes", 20_000, None)])
def test_a_refusal_is_read_in_any_type_up_to_a_limit(record, kind, more, message):
    assert record(refused_by, kind, more).one("http.request").get("error_message") == message


def kept_in_the_scope():
    """Lets the application store an object in the scope that refers to its `send`, which forms a cycle."""

    found = []

    class Request:
        pass

    async def app(scope, _receive, send):
        scope["request"] = request = Request()
        request.send = send
        found.append(weakref.ref(request))

    run(app, {})
    gc.collect()
    print(found[0]())


def test_an_exchange_in_a_cycle_is_collected(record):
    assert record(kept_in_the_scope).stdout == "None\n"


def a_scope_of_somebody_else():
    async def app(_scope, _receive, _send):
        print(len(asgi._under_way))

    run(app, {"sa_profile.received": None})
    print(len(asgi._under_way))


def test_issue_47_a_request_whose_arrival_cannot_be_read_leaves_nothing_open(record):
    done = record(a_scope_of_somebody_else, SA_PROFILE_LEVEL="verbose")
    assert (done.stdout, done.stderr) == ("1\n0\n", "")
    assert "waited_us" not in done.one("http.request")
