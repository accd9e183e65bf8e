"""Runs the tests' fake SGLang with the plugin: a whole server in one process, or one of its roles alone.

SGLang's modules are imported after the plugin is registered, as in SGLang's processes.
"""

import asyncio
import functools
import importlib
import os
import pickle

from sa_profile.sglang import register

PROMPT = "hello"


def module(name):
    """Returns a module of the fake SGLang, without the attributes that `FAKE_SGLANG_WITHOUT` names as `module:Class.name`."""
    for path in filter(None, os.environ.pop("FAKE_SGLANG_WITHOUT", "").split(",")):
        owner, _, attribute = path.rpartition(".")
        file, _, cls = owner.partition(":")
        delattr(getattr(importlib.import_module(f"sglang.srt.{file}"), cls), attribute)
    register()
    return importlib.import_module(f"sglang.srt.{name}")


def settings(dp_rank=None, tp_rank=0, **more):
    """Returns the arguments of each role, after the ranks of this process are set."""
    server_args = module("server_args")
    arguments = server_args.ServerArgs(**more)
    context = module("runtime_context")
    context.publish(arguments, role="tokenizer", ranks=context.SpawnRanks(tp_rank, dp_rank))
    return arguments, server_args.PortArgs("to tokenizer", "to scheduler", "to detokenizer", 0, "", "", None, None)


# One role


def scheduler(tp_rank=0, dp_rank=None, **more):
    """Returns a scheduler that was started like SGLang starts its process, with this process's title."""
    arguments, ports = settings(dp_rank, tp_rank, **more)
    return module("managers.scheduler").run_scheduler_process(arguments, ports, 0, tp_rank, 0, dp_rank, None)


def request(rid, prompt=5, tokens=3, stream=True, priority=None, **params):
    """Returns a request as the scheduler gets it from the tokenizer manager."""
    times = module("observability.req_time_stats").APIServerReqTimeStats()
    times.set_created_time()
    sampling_params = module("sampling.sampling_params").SamplingParams(max_new_tokens=tokens, **params)
    from array import array

    return module("managers.io_struct").TokenizedGenerateReqInput(
        rid=rid, input_text="", input_ids=array("q", range(prompt)), sampling_params=sampling_params, stream=stream, priority=priority, time_stats=times,
    )  # fmt: skip


def send(to, *messages):
    """Sends messages to a scheduler, pickled as between processes."""
    for message in messages:
        to.request_receiver.recv_from_tokenizer.send(message)


def answer(to, *rids, **sizes):
    """Makes a scheduler answer requests. Returns the messages that it sent to the detokenizer."""
    send(to, *(request(rid, **sizes) for rid in rids))
    return turn(to)


def turn(of, most=500):
    """Runs turns until a scheduler is idle again. Returns the messages that it sent to the detokenizer."""
    for _ in range(most):
        of.turn()
        if of.is_fully_idle():
            return sent(of)
    raise AssertionError("requests are left")


def sent(by):
    """Removes and returns the messages that a scheduler has sent to the detokenizer. A rank above 0 sends none."""
    socket = by.output_streamer.send_to_detokenizer.socket
    return [socket.recv() for _ in range(len(socket))] if socket else []


def schedule(*rids, ranks=None, cached=None, **more):
    """Runs a scheduler until it has answered these requests, and returns it. `cached` is the number of cached prompt tokens by tier."""
    sizes = {name: more.pop(name) for name in ("prompt", "tokens", "stream", "json_schema", "custom_params") if name in more}
    made = scheduler(**(ranks or {}), **more)
    vars(made.tree_cache).update(cached or {})
    answer(made, *rids, **sizes)
    return made


def decode(messages):
    """Runs a detokenizer on messages of a scheduler, and returns what it sends to the tokenizer manager."""
    manager = module("managers.detokenizer_manager").run_detokenizer_process(*settings())
    for message in messages:
        manager.recv_from_scheduler.send(message)
    manager.turn()
    return [manager.send_to_tokenizer.recv() for _ in range(len(manager.send_to_tokenizer))]


# A whole server


class Server:
    """The tokenizer manager, a scheduler and the detokenizer. A task runs the last two."""

    def __init__(self, **more):
        self.arguments, self.ports = settings(**more)
        self.tokenizer_manager = module("managers.tokenizer_manager").TokenizerManager(self.arguments, self.ports)
        self.scheduler = module("managers.scheduler").Scheduler(self.arguments, self.ports)
        self.detokenizer = module("managers.detokenizer_manager").DetokenizerManager(self.arguments, self.ports)
        self.is_running = True

    async def run(self):
        while self.is_running:
            self.scheduler.turn()
            self.detokenizer.turn()
            await asyncio.sleep(0.001)

    def request(self, rid=None, tokens=3, text=PROMPT, stream=True, **more):
        params = dict(max_new_tokens=tokens)
        return module("managers.io_struct").GenerateReqInput(rid=rid, text=text, sampling_params=params, stream=stream, **more)

    async def generate(self, rid=None, **more):
        """Returns the outputs of a request."""
        return [one async for one in self.tokenizer_manager.generate_request(self.request(rid, **more))]


def serves(scenario):
    """Turns scenario(server) into a program that runs it next to the task of the server's other roles. Further keywords are settings."""

    async def main(more):
        server = Server(**more)
        task = asyncio.create_task(server.run(), name="scheduler and detokenizer")
        try:
            await asyncio.wait_for(scenario(server), 20)
        finally:
            server.is_running = False
            await task
            for loop in server.tokenizer_manager.asyncio_tasks:
                loop.cancel()

    @functools.wraps(scenario)
    def program(**more):
        asyncio.run(main(more))

    return program


@serves
async def three_requests(server):
    outputs = await asyncio.gather(*(server.generate(f"rid-{n}") for n in range(3)))
    print([len(one) for one in outputs])


def messages(ids, tokens, **more):
    """Returns the pickled messages of a server without the plugin: to the detokenizer, and to the tokenizer manager."""
    made = scheduler(**more)
    outputs = answer(made, *ids, tokens=tokens)
    return [pickle.dumps(one) for one in outputs], [pickle.dumps(one) for one in decode(outputs)]
