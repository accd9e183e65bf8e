"""The API server's side of the plugin: HTTP, requests and their ids, outputs, clients that go away."""

import asyncio
import json
import multiprocessing
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sa_profile.vllm import register

try:
    import uvicorn
except ImportError:
    uvicorn = None
VERBOSE = dict(SA_PROFILE_LEVEL="verbose")
needs_uvicorn = pytest.mark.skipif(uvicorn is None, reason="needs uvicorn")


class Server:
    """An AsyncLLM and an engine core in one process, stepped by a task."""

    def __init__(self):
        register()
        from vllm.v1.core.sched.scheduler import Scheduler
        from vllm.v1.engine.async_llm import AsyncLLM
        from vllm.v1.engine.core import EngineCore
        from vllm.v1.executor.executor import Executor

        self.core = EngineCore(Scheduler(), Executor())
        self.client = AsyncLLM(lambda request: self.core.add_request(*self.core.preprocess_add_request(request)))
        self.running = True

    async def run(self):
        while self.running:
            outputs, _ = self.core.step_fn()
            for group in outputs.values():
                self.client.output_processor.process_outputs(group.outputs, group.timestamp)
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


def late_request():
    """vLLM stamped its arrival 50 ms before the request is sent on."""

    async def scenario(server):
        queue = await server.client.add_request("cmpl-1", [1, 2], 2, arrival_time=time.time() - 0.05)
        while not (await queue.get())[1]:
            pass
        await server.client.add_request("cmpl-2", [1, 2], 2, arrival_time=time.time() + 60)

    serve(scenario)


def test_what_comes_before_the_request_is_a_span_from_vllms_arrival(record):
    trace = record(late_request)
    (span,) = trace.named("request.preprocess")  # a clock that was set back says nothing
    assert 50_000 <= span["dur"] < 1_000_000 and span["args"]["external_id"] == "cmpl-1"
    sent = trace.named("request", "X")
    assert min(one["ts"] for one in sent) >= span["ts"] + span["dur"] - 1
    (answered,) = trace.named("request.answered")
    assert answered["args"]["reason"] == "length" and answered["ts"] > span["ts"] + span["dur"]


def odd_arrivals():
    """An embedder's own arrival times."""

    async def scenario(server):
        for number, arrival in enumerate(("noon", -1.0, 10**30, True, float("nan"))):
            queue = await server.client.add_request(f"cmpl-{number}", [1, 2], 2, arrival_time=arrival)
            while not (await queue.get())[1]:
                pass

    serve(scenario)


def test_odd_stamps_cost_nothing_but_their_span(record):
    trace = record(odd_arrivals)
    assert trace.named("request.preprocess") == [] and trace.stderr == ""
    assert len(trace.named("request.answered")) == 5
    spans = [one for one in trace.named("request", "X") if "external_id" in one["args"]]
    assert len(spans) == 5 and all(one["args"]["reason"] == "length" for one in spans)


def test_both_ids_and_the_counts_are_recorded(record):
    trace = record(three_requests, **VERBOSE)
    assert trace.stdout == "[3, 3, 3]\n" and trace.stderr == ""
    ids = {f"cmpl-{n}-0-1a2b3c4d": f"cmpl-{n}-0" for n in range(3)}
    assert {one["request_id"]: one["external_id"] for one in trace.args("OutputProcessor.add_request")} == ids
    spans = [one["args"] for one in trace.named("request", "X") if "external_id" in one["args"]]
    assert {one["request_id"]: one["external_id"] for one in spans} == ids
    for one in spans:
        assert (one["prompt_tokens"], one["output_tokens"], one["reason"], one["cached_tokens"]) == (4, 3, "length", 0)
    assert sorted(one["external_id"] for one in trace.args("AsyncLLM.generate")) == sorted(ids.values())
    assert len(trace.named("AsyncLLM.add_request")) == 3


def outputs_of_several_tokens():
    """Three requests; what one step brings of them has another number of tokens each. One id is used again, one request was never seen."""

    async def scenario(server):
        from vllm.v1.engine import EngineCoreOutput, FinishReason

        def step(stamp, **tokens):
            outputs = [EngineCoreOutput(f"{one}-0-1a2b3c4d", [7] * count, FinishReason.LENGTH if count == 0 else None) for one, count in tokens.items()]
            server.client.output_processor.process_outputs(outputs, stamp)

        server.client.send = lambda _request: None
        for one in ("a", "b"):
            await server.client.add_request(f"{one}-0", [1, 2], 9)
        step(5.0, a=1, stranger=1)
        step(5.25, a=1, b=1)
        step(6.0, a=3, b=2)
        step(6.5, a=0)
        await server.client.add_request("a-0", [1, 2], 9)
        step(7.0, a=1)
        step(None, b=1)
        step(8.0, stranger=1)

    serve(scenario)


def test_a_steps_outputs_name_their_requests_by_number(record):
    trace = record(outputs_of_several_tokens)
    of = {(span["args"]["external_id"], at): span["args"]["number"] for at, span in enumerate(sorted(trace.named("request", "X"), key=lambda one: one["ts"]))}
    a, b, again = of["a-0", 0], of["b-0", 1], of["a-0", 2]
    assert len({a, b, again}) == 3
    names = ("engine_ts_ns", "tokens", "request_numbers", "output_tokens_each")
    assert [tuple(one.get(name) for name in names) for one in trace.args("OutputProcessor.process_outputs")] == [
        (5_000_000_000, 2, [a], None),
        (5_250_000_000, 2, [a, b], None),
        (6_000_000_000, 5, [a, b], [3, 2]),
        (6_500_000_000, 0, [a], [0]),
        (7_000_000_000, 1, [again], None),
        (None, 1, [b], None),
        (8_000_000_000, 1, None, None),
    ]


def stopped_during_a_request():
    """Recording is off for two steps of a request."""

    async def scenario(server):
        from sa_profile import is_enabled
        from sa_profile._hooks.control import switch
        from vllm.v1.engine import EngineCoreOutput

        def step(stamp):
            server.client.output_processor.process_outputs([EngineCoreOutput("a-0-1a2b3c4d", [7], None)], stamp)

        async def switched(cause, on):
            switch(cause)
            while is_enabled() != on:
                await asyncio.sleep(0.01)

        server.client.send = lambda _request: None
        await server.client.add_request("a-0", [1, 2], 9)
        step(5.0)
        await switched("stop", False)
        await switched("start", True)
        step(6.0)  # no step came during the pause
        await switched("stop", False)
        step(7.0)
        step(8.0)
        await switched("start", True)
        step(9.0)
        step(10.0)

    serve(scenario)


def test_the_first_step_after_those_that_were_not_recorded_says_so(record):
    steps = record(stopped_during_a_request).args("OutputProcessor.process_outputs")
    assert [(one["engine_ts_ns"] // 10**9, one.get("after_pause")) for one in steps] == [(5, None), (6, None), (9, True), (10, None)]
    assert len({tuple(one["request_numbers"]) for one in steps}) == 1


def test_each_request_is_one_flow_from_arrival_to_end(record):
    trace = record(three_requests)
    flows = trace.flows("request")
    for request in {flow for _, flow in flows}:
        phases = [phase for phase, flow in flows if flow == request]
        assert phases == ["s", "t", "t", "t", "f"], phases
    merge = [Path(sys.executable).with_name("trace-merge"), "--report", "json", trace.folder]
    done = subprocess.run(merge, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["links"]["requests"] == 0, "the merge draws no second flow for them"
    assert trace.announced == [f"sa_profile: vLLM plugin: recording to {trace.folder}, levels e2e, kernel\n"]


def first_output_only():
    async def scenario(server):
        generator = server.client.generate([1], 1000, "cmpl-1-0")
        async for _ in generator:
            break
        await generator.aclose()
        print(server.client.aborted)

    serve(scenario)


def test_a_stream_closed_early_aborts_as_before(record):
    trace = record(first_output_only, **VERBOSE)
    assert trace.stdout == "['cmpl-1-0-1a2b3c4d']\n"
    front, = [one["args"] for one in trace.named("request", "X") if "external_id" in one["args"]]
    assert front["reason"] == "abort"
    assert trace.one("AsyncLLM.generate")["external_id"] == "cmpl-1-0"
    assert [phase for phase, _ in trace.flows()][-1] == "f"


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
    trace = record(engine_dies, **VERBOSE)
    assert trace.stdout == "the engine is dead\n"
    assert trace.one("AsyncLLM.add_request")["error"] == "ConnectionError"
    assert [phase for phase, _ in trace.flows()] == ["s", "f"]
    assert [(one["args"]["reason"], one["args"]["error"]) for one in trace.named("request", "X")] == [("error", "ConnectionError")]


def engine_dies_while_they_wait():
    async def scenario(server):
        both = [asyncio.create_task(server.complete(f"cmpl-{number}-0", 1000)) for number in range(2)]
        await asyncio.sleep(0.05)
        server.client.output_processor.propagate_error(ConnectionError("the engine is dead"))
        print(*await asyncio.gather(*both, return_exceptions=True))

    serve(scenario)


def test_an_engine_that_dies_ends_all_who_wait(record):
    trace = record(engine_dies_while_they_wait, **VERBOSE)
    assert trace.stdout == "the engine is dead the engine is dead\n" and trace.stderr == ""
    ended = [(one["args"]["reason"], one["args"]["error"]) for one in trace.named("request", "X") if "external_id" in one["args"]]
    assert ended == [("error", "ConnectionError")] * 2
    assert len(trace.named("OutputProcessor.propagate_error")) == 1
    assert len(trace.named("AsyncLLM.generate", "X")) == 2


def the_same_id_twice():
    async def scenario(server):
        first = asyncio.create_task(server.complete("cmpl-0"))
        await asyncio.sleep(0)
        queues, server.client.output_processor.queues = server.client.output_processor.queues, None  # its processor refuses
        try:
            await server.client.add_request("cmpl-0", [1, 2], 2)
        except TypeError:
            print("refused")
        server.client.output_processor.queues = queues
        print(len(await first))

    serve(scenario)


@pytest.mark.parametrize("lacking", [{}, {"FAKE_VLLM_WITHOUT": "InputProcessor.assign_request_id"}])
def test_a_second_request_of_an_id_does_not_end_the_first(record, lacking):
    trace = record(the_same_id_twice, **lacking)
    assert trace.stdout == "refused\n3\n"
    (reason,) = [one["args"]["reason"] for one in trace.named("request", "X") if "external_id" in one["args"]]
    assert reason == "length"


def its_own_generator():
    async def scenario(server):
        generator = server.client.generate([1], 2, "cmpl-1-0")
        print(generator.ag_code.co_filename.endswith("async_llm.py"))
        async for _ in generator:
            pass

    serve(scenario)


def test_the_items_of_a_stream_pass_through_nothing_of_ours(record):
    assert record(its_own_generator).stdout == "True\n"


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


def while_off():
    async def scenario(server):
        await server.complete("cmpl-1-0")
        from sa_profile._vllm import frontend

        print(type(server.client.generate([1], 1, "x")).__qualname__, len(frontend._front.open))

    serve(scenario)


def test_while_off_items_pass_through_nothing(record):
    trace = record(while_off, SA_PROFILE_START="paused")
    assert trace.stdout == "async_generator 0\n"


# HTTP


async def get(app, path="/v1/completions", headers=(), heard=()):
    """What the application sends; `heard` is what the server says of the client."""
    sent, heard = [], iter(heard)

    async def send(message):
        sent.append(message)

    async def receive():
        return next(heard)

    await app({"type": "http", "method": "POST", "path": path, "headers": headers}, receive, send)
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
    ended = http["ts"] + http["dur"]
    assert 0 < http["args"].pop("answered_us") < http["dur"]
    assert http["args"] == dict(
        method="POST", path="/v1/completions", exchange=1, status=200, request_ids=["cmpl-1-0-1a2b3c4d"], external_ids=["cmpl-1-0"],
    )
    chunk, = trace.named("http.first_chunk")
    assert http["ts"] < chunk["ts"] < ended
    assert chunk["args"]["request_ids"] == ["cmpl-1-0-1a2b3c4d"]
    assert "APIServer" in trace.process_names()
    start, = [one for one in trace.named("request") if one["ph"] == "s"]
    assert start["tid"] == http["tid"], "on the row of the span that it starts in"
    assert http["ts"] <= start["ts"] < trace.named("EngineCore.preprocess_add_request")[0]["ts"]
    before, = trace.named("request.preprocess")
    assert before["tid"] == http["tid"] and http["ts"] <= before["ts"] and before["ts"] + before["dur"] <= ended
    # Each span in a coroutine costs a request some microseconds. A span that no figure needs is recorded at level verbose.
    by_default = {one["name"] for one in trace.events if one.get("cat") in {"http", "serving", "render", "transport"}}
    assert by_default == {"AsyncLLM.__init__", "http.request", "http.first_chunk", "OutputProcessor.process_outputs"}


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
    assert http["waited_us"] > 0 and 0 <= http["uncertainty_us"] < 20_000 and http["request_ids"] == ["cmpl-1-0-1a2b3c4d"]
    since_began = chunk["ts"] - trace.named("http.request")[0]["ts"]
    assert http["waited_us"] < chunk["args"]["elapsed_us"] < since_began + http["waited_us"] + 100


class Parameters:
    """As vLLM's sampling parameters."""

    def __init__(self, **params):
        self.max_tokens = 3
        self.structured_outputs = None
        self.__dict__.update(params)


def with_parameters():
    async def scenario(server):
        from vllm.v1.engine import EngineCoreRequest

        lora = type("LoRARequest", (), dict(lora_name="poet"))()
        one = EngineCoreRequest("cmpl-1", [1], sampling_params=Parameters(structured_outputs={"json": {}}), lora_request=lora, priority=2)
        parent = type("ParentRequest", (), dict(sampling_params=Parameters(n=4)))()
        server.client.output_processor.add_request(one, None, parent, 0, asyncio.Queue())
        server.client.output_processor.add_request(EngineCoreRequest("cmpl-2", [1], sampling_params=Parameters()), None, None, 0, asyncio.Queue())
        server.client.output_processor.add_request(EngineCoreRequest("pool-1", [1]), None, None, 0, asyncio.Queue())
        server.client.output_processor.abort_requests(["cmpl-1", "cmpl-2", "pool-1"], True)

    serve(scenario)


def test_what_the_client_asked_for_is_known_from_the_begin(record):
    names = ("max_tokens", "n", "structured", "priority", "lora")
    spans = sorted(record(with_parameters).named("request", "X"), key=lambda span: span["args"]["number"])
    found = [{name: span["args"][name] for name in names if name in span["args"]} for span in spans]
    assert found == [dict(max_tokens=3, n=4, structured=True, priority=2, lora="poet"), dict(max_tokens=3), {}]


def chatting():
    async def scenario(server):
        from sa_profile._http.asgi import HttpSpans
        from vllm.entrypoints.openai.chat_completion.serving import OpenAIServingChat

        serving = OpenAIServingChat(server.client)

        async def app(scope, receive, send):
            handler = asyncio.create_task(serving.create_chat_completion(["a", "b"]))  # as vLLM does, to cancel it
            await send({"type": "http.response.start", "status": 200})
            async for _ in await handler:
                await send({"type": "http.response.body", "body": b"token", "more_body": True})
            await send({"type": "http.response.body", "body": b""})

        await asyncio.gather(*(get(HttpSpans(app)) for _ in range(2)))

    serve(scenario)


def test_template_and_tokeniser_are_spans_of_their_exchange(record):
    trace = record(chatting, **VERBOSE)
    assert trace.stderr == ""
    for name in ("OpenAIServingChat.create_chat_completion", "BaseRenderer.render_chat_async", "BaseRenderer.tokenize_prompts_async"):
        assert sorted(one["exchange"] for one in trace.args(name)) == [1, 2], name
    for name in ("BaseRenderer._tokenize_prompt", "safe_apply_chat_template"):
        assert len(trace.named(name)) == 2, name
    assert sorted(one["exchange"] for one in trace.args("http.request")) == [1, 2]


@needs_uvicorn
def test_a_steps_outputs_are_sent_in_one_span(record):
    trace = record(served, **VERBOSE)
    steps, turns = trace.named("OutputProcessor.process_outputs"), trace.named("outputs.send")
    assert len(turns) == len(steps) == 3 and [one["args"]["outputs"] for one in turns] == [1, 1, 1]
    for step, sent in zip(steps, turns, strict=True):
        assert step["ts"] + step["dur"] <= sent["ts"] + 0.001
    chunk, = trace.named("http.first_chunk")
    assert turns[0]["ts"] <= chunk["ts"]


def offline_in_a_notebook():
    """An engine that is called and not served, by code of a running loop: no turn of it comes between two steps."""

    async def main():
        from sa_profile._vllm.sending import turn

        loop = asyncio.get_running_loop()
        handles = loop.call_soon
        added = []
        loop.call_soon = lambda *args, **kwargs: (added.append(args), handles(*args, **kwargs))[1]
        for step in range(5):
            sending = turn(1)
            if sending is not None:
                sending.woken()
        print(len(added))
        await asyncio.sleep(0.01)
        turn(7).woken()
        await asyncio.sleep(0.01)
        turn(8)  # its step failed
        await asyncio.sleep(0.01)
        turn(9).woken()
        await asyncio.sleep(0.01)
        turn(10).woken()  # the loop ends before

    import sa_profile

    sa_profile.instant("begun")
    asyncio.run(main())
    asyncio.run(main())


def test_steps_between_which_no_turn_comes_are_sent_in_none(record):
    trace = record(offline_in_a_notebook, **VERBOSE)
    assert trace.stdout == "2\n2\n"
    sent = [one["outputs"] for one in trace.args("outputs.send")]
    assert [one for one in sent if one != 10] == [7, 9, 7, 9] and trace.stderr == ""


def streamed_from_another_task():
    """As starlette does it, which listens to the client meanwhile; the engine dies amid it."""
    import os

    import sa_profile

    async def scenario(server):
        from sa_profile._http.asgi import HttpSpans

        async def app(scope, receive, send):
            async def stream():
                await server.client.add_request("cmpl-1", [1], 1000)

            await asyncio.create_task(stream())
            sa_profile.flush()
            os._exit(0)

        await get(HttpSpans(app))

    serve(scenario)


def test_the_arrow_of_an_open_request_has_its_start(record):
    trace = record(streamed_from_another_task)
    assert [phase for phase, _ in trace.flows()][:2] == ["s", "t"]


def client_goes():
    async def scenario(_server):
        from sa_profile._http.asgi import HttpSpans

        async def goes(scope, receive, send):
            await send({"type": "http.response.start", "status": 200})
            await asyncio.sleep(0.01)
            print((await receive())["type"])

        async def stays(scope, receive, send):
            await send({"type": "http.response.start", "status": 200})
            await send({"type": "http.response.body", "body": b"all"})
            await receive()  # uvicorn says so too once the answer is complete

        for app in (goes, stays):
            await get(HttpSpans(app), heard=[{"type": "http.disconnect"}])

    serve(scenario)


def test_a_client_that_goes_away_is_on_its_span(record):
    trace = record(client_goes)
    assert trace.stdout == "http.disconnect\n"
    gone, stayed = trace.args("http.request")
    assert gone["disconnected_us"] >= 10_000 and "disconnected_us" not in stayed


def titled(name):
    from sa_profile._vllm import announcement

    announcement.title = lambda: name
    three_requests()


def second_api_server():
    titled("APIServer_1")


def supervise(first_rank):
    """vLLM's supervisor of data parallel servers, each with a port of its own, titles them by their ranks over all nodes."""
    context = multiprocessing.get_context("spawn")
    for rank in (first_rank, first_rank + 1):
        server = context.Process(target=titled, args=(f"APIServer_DP{rank}",), name=f"APIServer_DPRank_{rank}")
        server.start()
        server.join()


def supervisor():
    supervise(0)


def supervisor_of_the_second_node():
    supervise(2)


@pytest.mark.parametrize(
    ("function", "names", "lines"),
    [
        (second_api_server, {"APIServer_1"}, 0),
        (supervisor, {"APIServer_DP0", "APIServer_DP1"}, 1),
        (supervisor_of_the_second_node, {"APIServer_DP2", "APIServer_DP3"}, 1),
    ],
)
def test_several_api_servers_say_it_once(record, function, names, lines):
    trace = record(function)
    assert len(trace.announced) == lines and names <= set(trace.process_names())


def node_without_api_servers():
    register()
    from vllm.engine.arg_utils import EngineArgs

    print(EngineArgs().create_engine_config(), EngineArgs().create_engine_config(usage_context=None, headless=True))


@pytest.mark.parametrize(
    ("start", "said"),
    [(None, "{folder}, levels e2e, kernel"), ("paused", "{folder} is paused: sa-profile start {folder} begins")],
)
def test_a_node_without_api_servers_says_it_too(record, start, said):
    trace = record(node_without_api_servers, SA_PROFILE_START=start)
    assert trace.stdout == "config headless\n"
    assert trace.announced == [f"sa_profile: vLLM plugin: recording to {said.format(folder=trace.folder)}\n"]


def a_request_after_the_level_was_raised():
    from types import SimpleNamespace

    from sa_profile._hooks import chain
    from sa_profile._vllm import frontend

    waiting = SimpleNamespace(work=lambda: None)
    chain._details.append((waiting, "work", lambda: None))  # as if the level had been lower until now
    leave = frontend.admit(None, SimpleNamespace(request_id="cmpl-1", prompt_token_ids=[1], external_req_id=None))
    print(chain.is_chained(waiting.work))
    leave(None, None)


def a_request_of_the_engine_after_the_level_was_raised():
    from types import SimpleNamespace

    from sa_profile._hooks import chain
    from sa_profile._vllm.requests import EngineRequests

    waiting = SimpleNamespace(work=lambda: None)
    chain._details.append((waiting, "work", lambda: None))
    EngineRequests(lambda: None).arrived(SimpleNamespace(request_id="cmpl-1", prompt_token_ids=[1]))
    print(chain.is_chained(waiting.work))


@pytest.mark.parametrize("program", [a_request_after_the_level_was_raised, a_request_of_the_engine_after_the_level_was_raised])
def test_issue_47_a_raised_level_holds_for_a_program_without_a_server(record, program):
    assert record(program, **VERBOSE).stdout == "True\n"


def level_raised_while_it_serves():
    """A request comes after the level was raised: what is recorded at that level only is wrapped by then."""

    async def scenario(server):
        from sa_profile._hooks import chain
        from vllm.v1.engine.input_processor import InputProcessor
        from vllm.v1.serial_utils import MsgpackEncoder

        print(chain.is_chained(InputProcessor.process_inputs), chain.is_chained(MsgpackEncoder.encode))
        await server.complete("cmpl-1-0")

    serve(scenario)


@pytest.mark.parametrize(("level", "are_wrapped"), [("e2e", False), ("verbose", True)])
def test_by_default_what_only_level_verbose_records_is_not_wrapped(record, level, are_wrapped):
    """Each wrapper costs every request some of its time."""
    trace = record(level_raised_while_it_serves, SA_PROFILE_LEVEL=level)
    assert trace.stdout == f"{are_wrapped} {are_wrapped}\n"
    assert bool(trace.named("InputProcessor.process_inputs")) == are_wrapped
