"""The middleware around applications of Starlette and FastAPI that uvicorn serves, asked over sockets."""

import asyncio
import http.client
import os
import socket
import sys
import threading
from pathlib import Path

import pytest

from sa_profile.asgi import ProfileMiddleware

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


# Without the fakes of other tests, of which one is called starlette.
PATHS = os.pathsep.join([str(Path(__file__).parent), *sys.path])


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
    """The application on a port of its own, in a thread."""

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
        """The status and the text of an answer."""
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
    trace = record(answers, inside, PYTHONPATH=PATHS, SA_PROFILE_LEVEL="verbose")
    found = {span["args"]["path"]: span["args"] for span in trace.named("http.request", "X")}
    assert len(trace.named("http.request")) == 5
    assert (found["/plain"]["method"], found["/plain"]["status"]) == ("POST", 200)
    assert (found["/refused"]["status"], found["/refused"]["error_message"]) == (422, "too long")
    assert found["/nowhere"]["status"] == 404
    assert found["/failing"]["error"] == "KeyError"
    assert found["/streamed"]["answered_us"] >= 20_000
    assert len(trace.named("http.first_chunk")) == 5 - inside  # the page of a failure is sent around it
    assert trace.named("http.read") and trace.stderr == ""


def answers_of_fastapi():
    from fastapi import FastAPI

    app = FastAPI()
    app.add_middleware(ProfileMiddleware)

    @app.post("/sum")
    async def add(numbers: list[int]):
        return sum(numbers)

    with Served(app) as served:
        assert served.ask("/sum", "[1, 2]") == (200, "3")
        assert served.ask("/sum", '["one"]')[0] == 422


def test_what_fastapi_refuses_says_why(record):
    pytest.importorskip("fastapi")
    trace = record(answers_of_fastapi, PYTHONPATH=PATHS)
    answered, refused = (span["args"] for span in trace.named("http.request", "X"))
    assert (answered["status"], refused["status"]) == (200, 422)
    assert "valid integer" in refused["error_message"], refused


def twice():
    with Served(ProfileMiddleware(ProfileMiddleware(application()))) as served:
        assert served.ask("/plain", "you") == (200, "hello you")


def test_a_request_has_one_span_however_often_it_is_wrapped(record):
    record(twice, PYTHONPATH=PATHS).one("http.request")


def test_nothing_is_recorded_where_nothing_asks_for_it(record):
    trace = record(answers, True, PYTHONPATH=PATHS, SA_PROFILE_DIR=None)
    assert trace.events == [] and trace.stderr == ""
