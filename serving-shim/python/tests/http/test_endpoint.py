"""What FastAPI does with a request, on stand-ins for it."""

import asyncio
import json
import time

import pytest

import sa_profile
from sa_profile._hooks.chain import is_chained
from sa_profile._hooks.imports import when_imported
from sa_profile._http import endpoint
from sa_profile._http.asgi import HttpSpans


def route(function):
    """Returns a handler of FastAPI, after FastAPI and starlette were hooked."""
    when_imported("fastapi.routing", endpoint.hook_routing)
    when_imported("starlette.requests", endpoint.hook_requests)
    from fastapi import routing

    sa_profile.instant("begun")
    return routing.get_request_handler(function)


async def receive():
    return {"type": "http.request", "body": json.dumps([1, 2]).encode()}


def handled():
    async def function(request):
        time.sleep(0.01)
        return request

    handler = route(function)

    async def app(_scope, receive, _send):
        print(await handler(receive))

    asyncio.run(HttpSpans(app)({"type": "http"}, receive, None))


def handled_and_looked_at():
    handled()
    from fastapi import routing
    from starlette.requests import Request

    print(*map(is_chained, (Request.body, Request.json, routing.solve_dependencies, routing.run_endpoint_function)))


@pytest.mark.parametrize("level", ["e2e,kernel", "verbose"])
def test_functions_are_wrapped_only_where_their_spans_are_recorded(record, level):
    trace = record(handled_and_looked_at, SA_PROFILE_LEVEL=level)
    assert trace.stdout.splitlines()[1] == " ".join([str(level == "verbose")] * 4)


def test_reading_parsing_and_checking_are_spans_of_the_request(record):
    trace = record(handled, SA_PROFILE_LEVEL="verbose")
    assert trace.stdout == "[1, 2]\n"
    (request,) = trace.named("http.request")
    (route,), (read, again) = trace.named("http.route"), trace.named("http.read")
    assert abs(route["ts"] - request["ts"]) < 1000 and route["ts"] + route["dur"] <= read["ts"]
    for name in ("http.route", "http.read", "http.parse", "http.validate", "http.endpoint"):
        span = trace.named(name)[0]
        assert span["tid"] == request["tid"] and request["ts"] <= span["ts"]
        assert span["ts"] + span["dur"] <= request["ts"] + request["dur"]
    (parse,) = trace.named("http.parse")
    assert parse["ts"] <= again["ts"], "it reads what is read already"
    assert trace.named("http.endpoint")[0]["dur"] >= 10_000


def handled_in_a_child_task():
    """As starlette's BaseHTTPMiddleware does it: the application runs in a task of its own."""

    async def function(request):
        await asyncio.sleep(0.01)
        return request

    handler = route(function)

    async def app(_scope, receive, _send):
        await asyncio.create_task(handler(receive))

    async def main():
        await asyncio.gather(*(HttpSpans(app)({"type": "http"}, receive, None) for _ in range(2)))
        await handler(receive)  # for no request of HTTP

    asyncio.run(main())


def test_in_a_child_task_the_spans_say_whose_they_are(record):
    trace = record(handled_in_a_child_task, SA_PROFILE_LEVEL="verbose")
    assert sorted(one["exchange"] for one in trace.args("http.request")) == [1, 2]
    assert sorted(one["exchange"] for one in trace.args("http.route")) == [1, 2]
    for name in ("http.parse", "http.validate", "http.endpoint"):
        assert sorted(one.get("exchange", 0) for one in trace.args(name)) == [0, 1, 2], name
    assert {one.get("exchange", 0) for one in trace.args("http.read")} == {0, 1, 2}
