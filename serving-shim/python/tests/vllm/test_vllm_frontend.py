"""The API server's part of the plugin: HTTP, requests and their ids, outputs, clients that disconnect."""

import asyncio
import multiprocessing
import time
from types import SimpleNamespace

import pytest
import stand_ins as fake
from sa_profile.vllm import register
from stand_ins import serves

import sa_profile

try:
    import uvicorn
except ImportError:
    uvicorn = None
VERBOSE = dict(SA_PROFILE_LEVEL="verbose")
WITHOUT_INTERNAL_IDS = dict(FAKE_VLLM_WITHOUT="InputProcessor.assign_request_id")
needs_uvicorn = pytest.mark.skipif(uvicorn is None, reason="needs uvicorn")


async def end_of(queue):
    while not (await queue.get())[1]:
        pass


@serves
async def arrivals(server):
    """Sends requests with arrival stamps. The first is 50 ms old. The others, from a clock that was set back or from an embedder, must be ignored."""
    for number, arrival in enumerate((time.time() - 0.05, time.time() + 60, "noon", -1.0, 10**30, True, float("nan"))):
        await end_of(await server.add(f"cmpl-{number}", arrival_time=arrival))


def test_preprocessing_is_a_span_from_vllms_arrival_stamp(record):
    trace = record(arrivals)
    (span,) = trace.named("request.preprocess")
    assert 50_000 <= span["dur"] < 1_000_000 and span["args"]["external_id"] == "cmpl-0" and trace.stderr == ""
    assert min(one["ts"] for one in trace.named("request", "X")) >= span["ts"] + span["dur"] - 1
    answered = trace.named("request.answered")
    assert [one["args"]["reason"] for one in answered] == [one["reason"] for one in trace.awaited()] == ["length"] * 7
    assert answered[0]["ts"] > span["ts"] + span["dur"]


@pytest.mark.parametrize(("lacking", "added"), [({}, "-1a2b3c4d"), (WITHOUT_INTERNAL_IDS, "")])
def test_each_request_has_both_ids_its_counts_and_one_flow(record, lacking, added):
    trace = record(fake.three_requests, **VERBOSE, **lacking)
    assert trace.stdout == "[3, 3, 3]\n" and trace.stderr == ""
    assert trace.announced == [f"sa_profile: vLLM plugin: recording to {trace.folder}, levels e2e, kernel, verbose\n"]
    ids = {f"cmpl-{n}-0{added}": f"cmpl-{n}-0" for n in range(3)}
    for found in (trace.args("OutputProcessor.add_request"), trace.awaited()):
        assert {one["request_id"]: one["external_id"] for one in found} == ids
    for one in trace.awaited():
        assert (one["prompt_tokens"], one["output_tokens"], one["reason"], one["cached_tokens"]) == (4, 3, "length", 0)
    assert sorted(one["external_id"] for one in trace.args("AsyncLLM.generate")) == sorted(ids.values())
    assert len(trace.named("AsyncLLM.add_request")) == 3
    flows = trace.flows("request")
    for request in {flow for _, flow in flows}:
        assert [phase for phase, flow in flows if flow == request] == ["s", "t", "t", "t", "f"]
    assert sa_profile.merge(trace.folder).members["links"]["requests"] == 0, "the merge draws no second flow for them"


def output(request, tokens=1, reason=None):
    return fake.EngineCoreOutput(f"{request}-0-1a2b3c4d", [7] * tokens, reason)


@serves
async def outputs_of_several_tokens(server):
    """Sends outputs with different numbers of tokens for two requests. One id is used again, and one request is unknown."""

    def step(stamp, **tokens):
        last = fake.FinishReason.LENGTH
        server.processor.process_outputs([output(one, count, None if count else last) for one, count in tokens.items()], stamp)

    server.client.send = lambda _request: None
    for one in ("a-0", "b-0"):
        await server.add(one, 9)
    step(5.0, a=1, stranger=1)
    step(5.25, a=1, b=1)
    step(6.0, a=3, b=2)
    step(6.25, b=1, a=1)
    step(6.5, a=0, b=1)
    await server.add("a-0", 9)
    step(7.0, a=1)
    step(None, b=1)
    step(8.0, stranger=1)


def test_a_steps_outputs_name_their_requests_by_number(record):
    trace = record(outputs_of_several_tokens)
    a, b, again = (one["number"] for one in trace.awaited())
    assert len({a, b, again}) == 3 and trace.awaited()[0]["output_tokens"] == 6
    names = ("engine_ts_ns", "tokens", "request_numbers", "output_tokens_each")
    assert [tuple(one.get(name) for name in names) for one in trace.args("OutputProcessor.process_outputs")] == [
        (5_000_000_000, 2, [a], None),
        (5_250_000_000, 2, [a, b], None),
        (6_000_000_000, 5, [a, b], [3, 2]),
        (6_250_000_000, 2, [b, a], None),
        (6_500_000_000, 1, [a, b], [0, 1]),
        (7_000_000_000, 1, [again], None),
        (None, 1, [b], None),
        (8_000_000_000, 1, None, None),
    ]


@serves
async def stopped_during_a_request(server):
    """Switches recording off for two steps of a request."""
    from sa_profile._hooks.control import switch

    def steps(*stamps):
        for stamp in stamps:
            server.processor.process_outputs([output("a")], stamp)

    async def switched(cause):
        switch(cause)
        while sa_profile.is_enabled() != (cause == "start"):
            await asyncio.sleep(0.01)

    server.client.send = lambda _request: None
    await server.add("a-0", 9)
    steps(5.0)
    await switched("stop")
    await switched("start")
    steps(6.0)  # no step came during the pause
    await switched("stop")
    steps(7.0, 8.0)
    await switched("start")
    steps(9.0, 10.0)


def test_the_first_step_after_a_pause_is_marked(record):
    steps = record(stopped_during_a_request).args("OutputProcessor.process_outputs")
    assert [(one["engine_ts_ns"] // 10**9, one.get("after_pause")) for one in steps] == [(5, None), (6, None), (9, True), (10, None)]
    assert len({tuple(one["request_numbers"]) for one in steps}) == 1


@serves
async def engine_dies(server):
    """Lets the engine die while two requests wait. A third finds it dead."""

    def dead(_request):
        raise ConnectionError("the engine is dead")

    both = [asyncio.create_task(server.complete(f"cmpl-{number}-0", 1000)) for number in range(2)]
    await asyncio.sleep(0.05)
    server.client.send = dead
    print(*await asyncio.gather(server.complete("cmpl-2-0"), return_exceptions=True))
    server.processor.propagate_error(ConnectionError("the engine is dead"))
    print(*await asyncio.gather(*both, return_exceptions=True))


def test_all_waiting_requests_end_if_the_engine_dies(record):
    trace = record(engine_dies, **VERBOSE)
    assert trace.stdout == "the engine is dead\n" + "the engine is dead the engine is dead\n" and trace.stderr == ""
    assert [one.get("error") for one in trace.args("AsyncLLM.add_request")] == [None, None, "ConnectionError"]
    assert [(one["reason"], one["error"]) for one in trace.awaited()] == [("error", "ConnectionError")] * 3
    assert [phase for phase, _ in trace.flows()].count("f") == 3
    assert len(trace.named("OutputProcessor.propagate_error")) == 1 and len(trace.named("AsyncLLM.generate", "X")) == 3


@serves
async def the_same_id_twice(server):
    first = asyncio.create_task(server.complete("cmpl-0"))
    await asyncio.sleep(0)
    queues, server.processor.queues = server.processor.queues, None  # its processor refuses
    try:
        await server.add("cmpl-0")
    except TypeError:
        print("refused")
    server.processor.queues = queues
    print(len(await first))


@pytest.mark.parametrize("lacking", [{}, WITHOUT_INTERNAL_IDS])
def test_a_second_request_of_an_id_does_not_end_the_first(record, lacking):
    trace = record(the_same_id_twice, **lacking)
    assert trace.stdout == "refused\n3\n"
    assert [one["reason"] for one in trace.awaited()] == ["length"]


@serves
async def ends(server):
    """Ends requests in three ways: a stream is closed early, a stop string ends a request in the front end, and a pooling request is answered."""
    generator = server.client.generate([1], 1000, "cmpl-1-0")
    print(generator.ag_code.co_filename.endswith("async_llm.py"), "items pass through nothing of ours")
    async for _ in generator:
        break
    await generator.aclose()
    print(server.client.aborted)
    server.processor.stop.add("cmpl-2-0-1a2b3c4d")
    await server.complete("cmpl-2-0", 1000)
    server.core.abort_requests(["cmpl-1-0-1a2b3c4d", "cmpl-2-0-1a2b3c4d"])
    async for _ in server.client.encode([1], 1, "pool-1"):
        pass


def test_each_end_of_a_request_is_its_reason(record):
    trace = record(ends, **VERBOSE)
    assert trace.stdout == "True items pass through nothing of ours\n['cmpl-1-0-1a2b3c4d']\n"
    assert {one["external_id"]: one["reason"] for one in trace.awaited()} == {"cmpl-1-0": "abort", "cmpl-2-0": "stop", "pool-1": "length"}
    in_engine = [one["args"]["reason"] for one in trace.named("request", "X") if "external_id" not in one["args"]]
    assert in_engine == ["abort", "abort", "length"]
    assert {one["external_id"] for one in trace.args("AsyncLLM.generate")} == {"cmpl-1-0", "cmpl-2-0", "pool-1"}
    assert [phase for phase, _ in trace.flows()].count("f") == 3


@serves
async def stopped_by_a_text(server):
    """Ends a request with a stop text, in a step that vLLM received 20 ms before it processes its outputs."""
    server.client.send = lambda _request: None
    await server.add("a-0", 9)
    (request_id,) = server.processor.queues
    server.processor.stop.add(request_id)
    statistics = SimpleNamespace(iteration_timestamp=time.time())
    time.sleep(0.02)
    server.processor.process_outputs([SimpleNamespace(request_id=request_id, new_token_ids=[1], finish_reason=None)], 5.0, statistics)


def test_the_flow_of_a_request_that_a_text_stops_ends_in_its_last_step(record):
    trace = record(stopped_by_a_text)
    (step,) = trace.named("OutputProcessor.process_outputs")
    (answered,) = trace.named("request.answered")
    (end,) = [one for one in trace.named("request") if one["ph"] == "f"]
    assert answered["ts"] < step["ts"] <= end["ts"] <= step["ts"] + step["dur"]


@serves
async def while_off(server):
    from sa_profile._vllm import frontend

    await server.complete("cmpl-1-0")
    print(type(server.client.generate([1], 1, "x")).__qualname__, len(frontend._front.open))


def test_items_are_not_wrapped_while_recording_is_off(record):
    assert record(while_off, SA_PROFILE_START="paused").stdout == "async_generator 0\n"


# HTTP


async def get(app, heard=()):
    """Returns what the application sends. `heard` are the server's messages about the client."""
    sent, heard = [], iter(heard)

    async def send(message):
        sent.append(message)

    async def receive():
        return next(heard)

    await app({"type": "http", "method": "POST", "path": "/v1/completions", "headers": ()}, receive, send)
    return sent


def streaming(generate):
    """Returns an ASGI application that streams the items of a generator."""

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200})
        async for _ in await generate():
            await send({"type": "http.response.body", "body": b"token", "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    return app


@serves
async def served(server):
    async def generate():
        return server.client.generate([1, 2], 3, "cmpl-1-0")

    config = uvicorn.Config(streaming(generate), lifespan="off", log_config=None)
    config.load()
    print(len(await get(config.loaded_app)))


@needs_uvicorn
def test_http_is_linked_to_the_request(record):
    trace = record(served)
    assert trace.stdout == "5\n"
    (http,) = trace.named("http.request")
    ended = http["ts"] + http["dur"]
    assert 0 < http["args"].pop("answered_us") < http["dur"]
    assert http["args"] == dict(
        method="POST", path="/v1/completions", exchange=1, status=200, request_ids=["cmpl-1-0-1a2b3c4d"], external_ids=["cmpl-1-0"],
    )
    (chunk,) = trace.named("http.first_chunk")
    assert http["ts"] < chunk["ts"] < ended
    assert chunk["args"]["request_ids"] == ["cmpl-1-0-1a2b3c4d"]
    assert "APIServer" in trace.process_names()
    (start,) = trace.named("request", "s")
    assert start["tid"] == http["tid"], "on the row of the span that it starts in"
    assert http["ts"] <= start["ts"] < trace.named("EngineCore.preprocess_add_request")[0]["ts"]
    (before,) = trace.named("request.preprocess")
    assert before["tid"] == http["tid"] and http["ts"] <= before["ts"] and before["ts"] + before["dur"] <= ended
    # Each span in a coroutine costs a request some microseconds. A span that no figure needs is recorded at level verbose.
    by_default = {one["name"] for one in trace.events if one.get("cat") in {"http", "serving", "render", "transport"}}
    assert by_default == {"AsyncLLM.__init__", "http.request", "http.first_chunk", "OutputProcessor.process_outputs"}


@needs_uvicorn
def test_a_steps_outputs_are_sent_in_one_span(record):
    trace = record(served, **VERBOSE)
    steps, turns = trace.named("OutputProcessor.process_outputs"), trace.named("outputs.send")
    assert len(steps) == 3 and [one["args"]["outputs"] for one in turns] == [1, 1, 1]
    assert all(step["ts"] + step["dur"] <= sent["ts"] + 0.001 for step, sent in zip(steps, turns, strict=True))
    assert turns[0]["ts"] <= trace.named("http.first_chunk")[0]["ts"]


@serves
async def steps_without_a_turn(_server):
    """Calls an engine from code of a running loop, as in a notebook: the loop gets no turn between two steps."""
    from sa_profile._engine.sending import next_turn

    loop = asyncio.get_running_loop()
    added, call_soon = [], loop.call_soon
    loop.call_soon = lambda *args, **kwargs: (added.append(args), call_soon(*args, **kwargs))[1]
    turns = [next_turn(1) for _ in range(5)]
    turns[0].schedule_end()
    print(turns[1:], len(added))
    await asyncio.sleep(0.01)
    next_turn(7).schedule_end()
    await asyncio.sleep(0.01)


def test_steps_without_a_turn_between_them_have_no_span_of_sending(record):
    trace = record(steps_without_a_turn, **VERBOSE)
    assert trace.stdout == "[None, None, None, None] 2\n" and trace.one("outputs.send")["outputs"] == 7


def parameters(**more):
    """Returns an object like vLLM's sampling parameters."""
    return SimpleNamespace(**(dict(max_tokens=3, structured_outputs=None) | more))


@serves
async def with_parameters(server):
    asked = dict(sampling_params=parameters(structured_outputs={"json": {}}), lora_request=SimpleNamespace(lora_name="poet"), priority=2)
    parent = SimpleNamespace(sampling_params=parameters(n=4))
    for name, of, more in (("cmpl-1", parent, asked), ("cmpl-2", None, dict(sampling_params=parameters())), ("pool-1", None, {})):
        server.processor.add_request(fake.EngineCoreRequest(name, [1], **more), None, of, 0, asyncio.Queue())
    server.processor.abort_requests(["cmpl-1", "cmpl-2", "pool-1"], True)


def test_the_clients_options_are_recorded_at_the_beginning(record):
    names = ("max_tokens", "n", "structured", "priority", "lora")
    spans = sorted(record(with_parameters).named("request", "X"), key=lambda span: span["args"]["number"])
    found = [{name: span["args"][name] for name in names if name in span["args"]} for span in spans]
    assert found == [dict(max_tokens=3, n=4, structured=True, priority=2, lora="poet"), dict(max_tokens=3), {}]


@serves
async def chatting(server):
    from sa_profile._http.asgi import HttpSpans

    serving = fake.OpenAIServingChat(server.client)

    async def handler():
        return await asyncio.create_task(serving.create_chat_completion(["a", "b"]))  # in a task, because vLLM may cancel it

    await asyncio.gather(*(get(HttpSpans(streaming(handler))) for _ in range(2)))


def test_template_and_tokeniser_are_spans_of_their_exchange(record):
    trace = record(chatting, **VERBOSE)
    assert trace.stderr == ""
    for name in ("OpenAIServingChat.create_chat_completion", "BaseRenderer.render_chat_async", "BaseRenderer.tokenize_prompts_async", "http.request"):
        assert sorted(one["exchange"] for one in trace.args(name)) == [1, 2], name
    for name in ("BaseRenderer._tokenize_prompt", "safe_apply_chat_template"):
        assert len(trace.named(name)) == 2, name


@serves
async def client_goes(_server):
    from sa_profile._http.asgi import HttpSpans

    async def goes(scope, receive, send):
        await send({"type": "http.response.start", "status": 200})
        await asyncio.sleep(0.01)
        print((await receive())["type"])

    async def stays(scope, receive, send):
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"all"})
        await receive()  # uvicorn sends the same message after a complete answer

    for app in (goes, stays):
        await get(HttpSpans(app), heard=[{"type": "http.disconnect"}])


def test_a_disconnect_of_the_client_is_on_its_span(record):
    trace = record(client_goes)
    assert trace.stdout == "http.disconnect\n"
    gone, stayed = trace.args("http.request")
    assert gone["disconnected_us"] >= 10_000 and "disconnected_us" not in stayed


def titled(name):
    from sa_profile._vllm import announcement

    announcement.title = lambda: name
    fake.three_requests()


def supervise(first_rank):
    """Starts servers like vLLM's supervisor of data parallel servers. Each has its own port, and its title contains its rank over all nodes."""
    context = multiprocessing.get_context("spawn")
    for rank in (first_rank, first_rank + 1):
        server = context.Process(target=titled, args=(f"APIServer_DP{rank}",), name=f"APIServer_DPRank_{rank}")
        server.start()
        server.join()


@pytest.mark.parametrize(
    ("function", "argument", "names", "lines"),
    [
        (titled, "APIServer_1", {"APIServer_1"}, 0),
        (supervise, 0, {"APIServer_DP0", "APIServer_DP1"}, 1),
        (supervise, 2, {"APIServer_DP2", "APIServer_DP3"}, 1),
    ],
)
def test_only_one_of_several_api_servers_writes_the_line(record, function, argument, names, lines):
    trace = record(function, argument)
    assert len(trace.announced) == lines and names <= set(trace.process_names())


def node_without_api_servers():
    register()
    print(fake.EngineArgs().create_engine_config(), fake.EngineArgs().create_engine_config(usage_context=None, headless=True))


def test_a_node_without_api_servers_writes_the_line_too(record):
    trace = record(node_without_api_servers, SA_PROFILE_START="paused")
    assert trace.stdout == "config headless\n"
    assert trace.announced == [f"sa_profile: vLLM plugin: recording to {trace.folder} is paused; to start it: sa-profile start {trace.folder}\n"]


def requests_after_the_level_was_raised():
    from sa_profile._hooks import chain
    from sa_profile._vllm import frontend
    from sa_profile._vllm.requests import Requests

    new = SimpleNamespace(request_id="cmpl-1", prompt_token_ids=[1], external_req_id=None)
    for arrive in (Requests(lambda: None).receive, lambda new: frontend.admit(None, new)(None, None)):
        waiting = SimpleNamespace(work=lambda: None)
        chain._details.append((waiting, "work", lambda: None))  # as if the level had been lower until now
        arrive(new)
        print(chain.is_chained(waiting.work))


def test_issue_47_a_raised_level_applies_to_a_program_without_a_server(record):
    assert record(requests_after_the_level_was_raised, **VERBOSE).stdout == "True\nTrue\n"


@serves
async def level_raised_while_it_serves(server):
    """Handles a request after the level was raised. Functions that only this level records must be wrapped by then."""
    from sa_profile._hooks.chain import is_chained

    print(is_chained(fake.InputProcessor.process_inputs), is_chained(fake.MsgpackEncoder.encode))
    await server.complete("cmpl-1-0")


@pytest.mark.parametrize(("level", "are_wrapped"), [("e2e", False), ("verbose", True)])
def test_functions_for_level_verbose_are_wrapped_only_at_that_level(record, level, are_wrapped):
    """Each wrapper costs every request some time."""
    trace = record(level_raised_while_it_serves, SA_PROFILE_LEVEL=level)
    assert trace.stdout == f"{are_wrapped} {are_wrapped}\n"
    assert bool(trace.named("InputProcessor.process_inputs")) == are_wrapped
