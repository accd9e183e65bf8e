"""The middleware around applications of Starlette and FastAPI, served by uvicorn and called over sockets."""

import asyncio
import http.client
import socket
import threading

import pytest

from sa_profile._hooks.chain import is_chained
from sa_profile.asgi import ProfileMiddleware

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("httptools")


def application():
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
    from starlette.routing import Route

    async def plain(request):
        return PlainTextResponse(f"hello {(await request.body()).decode()}")

    async def refused(_request):
        return JSONResponse({"detail": "too long"}, status_code=422)

    async def failing(_request):
        raise KeyError("nothing")

    async def parts(request):
        for number in range(int(request.query_params["parts"])):
            yield f"{number};"
            await asyncio.sleep(0.01)

    async def streamed(request):
        return StreamingResponse(parts(request))

    routes = {"/plain": plain, "/refused": refused, "/failing": failing, "/streamed": streamed}
    return Starlette(routes=[Route(path, function, methods=["GET", "POST"]) for path, function in routes.items()])


class Served:
    """The application on its own port, in a thread."""

    def __init__(self, app):
        import uvicorn

        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]})

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.should_exit = True
        self.thread.join()

    def ask(self, path, body=None):
        """Returns the status and the text of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("POST" if body else "GET", path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        found = answer.status, answer.read().decode()
        connection.close()
        return found


def answers(inside):
    app = application()
    if inside:
        app.add_middleware(ProfileMiddleware)
    else:
        app = ProfileMiddleware(app)
    with Served(app) as served:
        assert served.ask("/plain", "you") == (200, "hello you")
        assert served.ask("/refused") == (422, '{"detail":"too long"}')
        assert served.ask("/nowhere") == (404, "Not Found")
        assert served.ask("/failing") == (500, "Internal Server Error")
        assert served.ask("/streamed?parts=3") == (200, "0;1;2;")


@pytest.mark.parametrize("inside", [True, False])
def test_each_request_is_a_span_with_its_answer(record, inside):
    trace = record(answers, inside, SA_PROFILE_LEVEL="verbose")
    found = {span["args"]["path"]: span["args"] for span in trace.named("http.request", "X")}
    assert len(trace.named("http.request")) == 5
    assert (found["/plain"]["method"], found["/plain"]["status"]) == ("POST", 200)
    assert (found["/refused"]["status"], found["/refused"]["error_message"]) == (422, "too long")
    assert found["/nowhere"]["status"] == 404
    assert found["/failing"]["error"] == "KeyError"
    streamed = found["/streamed"]
    assert streamed["answered_us"] >= 20_000
    # Time in the event loop counts: httptools reads a request before the loop has time for it.
    assert streamed["waited_us"] > 0 and 0 <= streamed["uncertainty_us"] < 20_000
    request, chunk = (trace.named(name)[-1] for name in ("http.request", "http.first_chunk"))
    assert streamed["waited_us"] < chunk["args"]["elapsed_us"] < chunk["ts"] - request["ts"] + streamed["waited_us"] + 100
    assert len(trace.named("http.first_chunk")) == 5 - inside  # the error page bypasses a middleware inside
    assert trace.named("http.read") and trace.stderr == ""


def answers_of_fastapi(in_child_tasks):
    from fastapi import FastAPI, routing
    from starlette.requests import Request

    app = FastAPI()
    if in_child_tasks:  # starlette's BaseHTTPMiddleware creates them

        @app.middleware("http")
        async def pass_on(request, call_next):
            return await call_next(request)

    app.add_middleware(ProfileMiddleware)

    @app.post("/sum")
    async def add(numbers: list[int]):
        return sum(numbers)

    with Served(app) as served:
        assert served.ask("/sum", "[1, 2]") == (200, "3")
        assert served.ask("/sum", '["one"]')[0] == 422
    print(*map(is_chained, (Request.body, Request.json, routing.solve_dependencies, routing.run_endpoint_function)))


@pytest.mark.parametrize("in_child_tasks", [False, True])
def test_the_work_of_fastapi_and_its_refusals_are_recorded(record, in_child_tasks):
    pytest.importorskip("fastapi")
    trace = record(answers_of_fastapi, in_child_tasks, SA_PROFILE_LEVEL="verbose")
    assert trace.stdout == "True True True True\n"
    requests = {span["args"]["exchange"]: span for span in trace.named("http.request", "X")}
    assert [span["args"]["status"] for span in requests.values()] == [200, 422]
    assert "valid integer" in requests[2]["args"]["error_message"]
    for name, of in (("http.route", {1, 2}), ("http.read", {1, 2}), ("http.parse", {1, 2}), ("http.validate", {1, 2}), ("http.endpoint", {1})):
        assert {span["args"]["exchange"] for span in trace.named(name)} == of, name
        for span in trace.named(name):
            request = requests[span["args"]["exchange"]]
            assert request["ts"] <= span["ts"] and span["ts"] + span["dur"] <= request["ts"] + request["dur"]
            assert in_child_tasks or span["tid"] == request["tid"]


def twice():
    from starlette.requests import Request

    with Served(ProfileMiddleware(ProfileMiddleware(application()))) as served:
        assert served.ask("/plain", "you") == (200, "hello you")
    print(is_chained(Request.body))


def test_a_request_has_one_span_and_by_default_no_function_is_wrapped(record):
    """A span in a coroutine would cost a request some microseconds."""
    trace = record(twice)
    assert trace.one("http.request")["status"] == 200 and trace.stdout == "False\n"


def test_nothing_is_recorded_unless_it_is_requested(record):
    trace = record(answers, True, SA_PROFILE_DIR=None)
    assert trace.events == [] and trace.stderr == ""
