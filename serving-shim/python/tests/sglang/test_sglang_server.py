"""The plugin in the tokenizer manager, the detokenizer and the data-parallel controller, and through a whole server, with stand-ins for SGLang's classes."""

import asyncio
import json

import pytest
import sglang_server as fake
from sa_profile.sglang import hook_points

# The tokenizer manager


@fake.serves
async def two_requests(server):
    """Prints the stamps of requests in us: when they were created, had their first token and were answered."""
    states = {}
    real = server.tokenizer_manager._init_req_state

    def init(obj, request=None):
        real(obj, request)
        states.update(server.tokenizer_manager.rid_to_state)

    server.tokenizer_manager._init_req_state = init
    await asyncio.gather(server.generate("a-1", tokens=4), server.generate("b-2", tokens=4, stream=False))
    names = ("created_time", "first_token_time", "finished_time")
    print(json.dumps({rid: [1e6 * getattr(state.time_stats, name) for name in names] for rid, state in states.items()}))


def test_a_request_is_recorded_from_its_creation_to_its_answer(record):
    trace = record(two_requests)
    assert trace.stderr == ""
    asked = {one["external_id"]: one for one in trace.awaited()}
    assert sorted(asked) == ["a-1", "b-2"]
    assert asked["a-1"].items() >= dict(
        request_id="a-1", prompt_tokens=5, max_tokens=4, model="tiny", cached_tokens=0, output_tokens=4, reason="length",
    ).items()  # fmt: skip
    times = {
        name: {one["args"]["request_id"]: one["ts"] for one in sorted(trace.named(name), key=lambda one: "external_id" in one["args"])}
        for name in ("request.preprocess", "request.first_token", "request.answered")
    }
    stamps = json.loads(trace.stdout)
    offsets = [times[name][rid] - stamp for rid in stamps for name, stamp in zip(times, stamps[rid], strict=True)]
    assert max(offsets) - min(offsets) < 1, offsets


def test_outputs_of_steps_are_listed(record):
    trace = record(two_requests)
    steps = trace.args("TokenizerManager.process_outputs")
    assert sum(one["tokens"] for one in steps) == 8 and all(one["outputs"] for one in steps)
    assert {number for one in steps for number in one["request_numbers"]} == {one["number"] for one in trace.awaited()}


@fake.serves
async def aborted(server):
    """Closes one request's generator, and aborts one that waits."""
    async for _ in server.tokenizer_manager.generate_request(server.request("a-1", tokens=400)):
        break
    waiting = asyncio.create_task(server.generate("b-2", tokens=3))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    server.tokenizer_manager.abort_request("b-2")
    await waiting
    while server.tokenizer_manager.rid_to_state:
        await asyncio.sleep(0.001)


def test_aborted_requests_end_in_the_frontend(record):
    trace = record(aborted, max_running_requests=1)
    assert {one["external_id"]: one["reason"] for one in trace.awaited()} == {"a-1": "abort", "b-2": "abort"}
    assert trace.stderr == ""


@fake.serves
async def rejected(server):
    try:
        await server.generate("a-1", text="")
    except ValueError as error:
        print(error)


def test_a_request_that_is_never_sent_is_not_recorded(record):
    trace = record(rejected)
    assert trace.stdout == "The prompt is empty.\n" and trace.stderr == "" and not trace.awaited()


@fake.serves
async def client_batch(server):
    request = server.request(["x", "y"], text=["hi", "ho"], tokens=3)
    print(len([1 async for _ in server.tokenizer_manager.generate_request(request)]))


def test_requests_of_a_clients_batch_are_recorded_one_by_one(record):
    trace = record(client_batch)
    assert sorted(one["external_id"] for one in trace.awaited()) == ["x", "y"]
    assert all(one["output_tokens"] == 3 for one in trace.awaited()) and trace.stderr == ""


@fake.serves
async def detailed(server):
    await server.generate("a-1")


def test_calls_are_spans_at_level_verbose(record):
    names = {"TokenizerManager.tokenize_one_request", "TokenizerManager.generate_request"}
    assert not names & {one["name"] for one in record(detailed).events}
    trace = record(detailed, SA_PROFILE_LEVEL="verbose")
    trace.merge()
    assert names <= {one["name"] for one in trace.events}


def with_health_check():
    made = fake.scheduler()
    fake.answer(made, "HEALTH_CHECK_1", tokens=1)
    fake.answer(made, "a-1")


def test_health_checks_are_no_requests(record):
    trace = record(with_health_check)
    assert {one["request_id"] for one in trace.args("request.queued")} == {"a-1"}


# Flows and the other processes


@fake.serves
async def one_request(server):
    await server.generate("a-1", tokens=3)


def test_a_request_is_linked_from_the_frontend_to_the_detokenizer_and_back(record):
    trace = record(one_request)
    flows = trace.flows("request")
    assert len({flow for _, flow in flows}) == 1
    assert flows[0][0] in "st" and flows[-1][0] in "ft" and len(flows) >= 5, flows
    assert trace.stderr == ""


def detokenize():
    made = fake.scheduler()
    print(len(fake.decode(fake.answer(made, "a-1", "b-2", tokens=4))))


def test_the_detokenizer_records_each_step(record):
    trace = record(detokenize)
    assert trace.stdout == "4\n" and trace.stderr == ""
    assert trace.process_names()[-1] == "sglang::detokenizer"
    assert trace.args("DetokenizerManager.decode_outputs") == [dict(outputs=2)] * 4
    verbose = record(detokenize, SA_PROFILE_LEVEL="verbose")
    assert verbose.args("DetokenizerManager.decode_outputs")[0]["request_ids"] == ["a-1", "b-2"]


def detokenize_more_than_it_follows():
    from sa_profile._sglang import detokenizer

    detokenizer.MAX_REQUESTS = 2
    fake.decode(fake.answer(fake.scheduler(), *(f"{n}-1" for n in range(3)), tokens=20))


def test_a_detokenizer_with_too_many_requests_records_no_flow_for_each_token(record):
    trace = record(detokenize_more_than_it_follows)
    assert trace.stderr == ""
    assert len([phase for phase, _ in trace.flows() if phase == "t"]) < 20


def dispatch():
    controller = fake.module("managers.data_parallel_controller")
    arguments, ports = fake.settings(dp_size=2)
    made = controller.run_data_parallel_controller_process(arguments, ports, None)
    for rid in ("a-1", "b-2"):
        made.recv_from_tokenizer.send(fake.request(rid))
    made.turn()
    print([len(worker) for worker in made.workers])


def test_the_controller_records_each_request(record):
    trace = record(dispatch)
    assert trace.stdout == "[1, 1]\n" and trace.stderr == ""
    assert trace.process_names() == ["sglang::data_parallel_controller"]
    assert [one["request_id"] for one in trace.args("DataParallelController.dispatch")] == ["a-1", "b-2"]
    assert [phase for phase, _ in trace.flows("request")] == ["t", "t"]


@fake.serves
async def profiled(server):
    """Requests a profile through the tokenizer manager, in a paused run, and ends it."""
    import sa_profile

    async def is_on(expected):
        for _ in range(300):
            if sa_profile.is_enabled() == expected:
                break
            await asyncio.sleep(0.01)
        return sa_profile.is_enabled()

    was_on = sa_profile.is_enabled()
    await server.tokenizer_manager.start_profile()
    print(was_on, await is_on(True), end=" ")
    await server.generate("a-1")
    await server.tokenizer_manager.stop_profile()
    print(await is_on(was_on))


@pytest.mark.parametrize("variables, printed", [(dict(SA_PROFILE_START="paused"), "False True False\n"), ({}, "True True True\n")])
def test_the_profile_routes_switch_a_paused_run(record, variables, printed):
    trace = record(profiled, **variables)
    assert trace.stdout == printed and trace.stderr == ""
    assert len(trace.awaited()) == 1


def test_the_plugin_is_loaded_by_its_entry_point(record):
    trace = record(loaded)
    assert trace.stdout == "True\n"


def loaded():
    from sa_profile._sglang import plugin

    from sglang.srt.plugins import load_plugins

    load_plugins()
    print(plugin._registered)


def test_hook_points_are_those_of_sglang(capsys):
    assert hook_points.main([]) == 2
    assert "SGLang" in capsys.readouterr().err
    assert not set(hook_points.POINTS) & set(hook_points.OPTIONAL)
