"""Builds engines, workers and servers from the tests' fake vLLM.

Each stand-in is an attribute of this module. It is imported at its first use, because the plugin waits for vLLM's modules.
"""

import asyncio
import functools
import importlib
import os
import sys

from sa_profile.vllm import register

NAMES = {
    "vllm.engine.arg_utils": "EngineArgs",
    "vllm.entrypoints.openai.chat_completion.serving": "OpenAIServingChat",
    "vllm.v1.core.sched.output": "CachedRequestData NewRequestData SchedulerOutput",
    "vllm.v1.core.sched.scheduler": "KVCacheManager Request RequestStatus Scheduler",
    "vllm.v1.engine": "EngineCoreOutput EngineCoreRequest FinishReason",
    "vllm.v1.engine.async_llm": "AsyncLLM",
    "vllm.v1.engine.core": "EngineCore EngineCoreProc",
    "vllm.v1.engine.input_processor": "InputProcessor",
    "vllm.v1.engine.processor": "Processor",
    "vllm.v1.executor.executor": "Executor",
    "vllm.v1.executor.multiproc_executor": "WorkerProc",
    "vllm.v1.serial_utils": "MsgpackDecoder MsgpackEncoder",
    "vllm.v1.structured_output": "StructuredOutputManager",
    "vllm.v1.worker.worker_base": "Model Runner WorkerWrapperBase",
}
MODULES = {name: module for module, names in NAMES.items() for name in names.split()}


def __getattr__(name):
    if name not in MODULES:
        raise AttributeError(name)
    return getattr(importlib.import_module(MODULES[name]), name)


fake = sys.modules[__name__]

# Removes attributes that other versions do not have.
for path in filter(None, os.environ.get("FAKE_VLLM_WITHOUT", "").split(",")):
    owner, attribute = path.split(".")
    delattr(getattr(fake, owner), attribute)


# Engines


def engine(queue=0, scheduler=None, **executor):
    register()
    return fake.EngineCore(scheduler or fake.Scheduler(), fake.Executor(**executor), queue)


def process():
    """Returns the engine core of a separate process."""
    register()
    return fake.EngineCoreProc(fake.Scheduler(), fake.Executor())


def request(request_id, prompt=3, tokens=3):
    return fake.EngineCoreRequest(request_id, list(range(prompt)), tokens)


def add(core, *ids, prompt=5, tokens=3):
    for one in ids:
        core.add_request(fake.Request(request(one, prompt, tokens)))


def turn(core, most=50):
    """Runs steps until no request is left."""
    for _ in range(most):
        if not core.scheduler.has_requests() and not core.batch_queue:
            return
        core.step_fn()
    raise AssertionError("requests are left")


def answer(core, *ids, **sizes):
    """Makes an engine answer requests, and returns the engine."""
    add(core, *ids, **sizes)
    turn(core)
    return core


def run(*ids, prompt=5, tokens=3, queue=0, futures=True, **scheduler):
    """Runs an engine until it has answered these requests. Further settings are for its scheduler."""
    register()
    return answer(engine(queue, fake.Scheduler(**scheduler), futures=futures), *ids, prompt=prompt, tokens=tokens)


def compile_grammars():
    register()
    manager, one = fake.StructuredOutputManager(), fake.Request(request("a-1"))
    manager.grammar_init(one)
    print(manager.grammar_bitmask({"a-1": one}, {"a-1": 0}, {}))


# Workers


def scheduled(*ids):
    """Returns the scheduler's output for a step in which these requests start."""
    new = [fake.NewRequestData(one, 0) for one in ids]
    return fake.SchedulerOutput(new, fake.CachedRequestData(), {one: 4 for one in ids}, 4 * len(ids))


def wrapper():
    register()
    made = fake.WorkerWrapperBase()
    made.init_worker([{}])
    return made


def loaded(made=None):
    """Returns a worker whose model is loaded."""
    made = made or wrapper()
    made.worker.load()
    made.initialize_from_config([])
    return made


# Servers


class Server:
    """An AsyncLLM and an engine core in one process. A task runs the steps."""

    def __init__(self):
        self.core = engine()
        self.client = fake.AsyncLLM(lambda request: self.core.add_request(*self.core.preprocess_add_request(request)))
        self.processor = self.client.output_processor
        self.running = True

    async def run(self):
        while self.running:
            outputs, _ = self.core.step_fn()
            for group in outputs.values():
                self.processor.process_outputs(group.outputs, group.timestamp)
            await asyncio.sleep(0.001)

    async def complete(self, request_id, tokens=3):
        return [one async for one in self.client.generate([1, 2, 3, 4], tokens, request_id)]

    async def add(self, request_id, tokens=2, **more):
        return await self.client.add_request(request_id, [1, 2], tokens, **more)


def serves(scenario):
    """Turns scenario(server, *arguments) into a program that runs it next to the engine's task."""

    async def main(arguments):
        server = Server()
        task = asyncio.create_task(server.run(), name="engine loop")
        try:
            await asyncio.wait_for(scenario(server, *arguments), 20)
        finally:
            server.running = False
            await task

    @functools.wraps(scenario)
    def program(*arguments):
        asyncio.run(main(arguments))

    return program


@serves
async def three_requests(server):
    outputs = await asyncio.gather(*(server.complete(f"cmpl-{n}-0") for n in range(3)))
    print([len(one) for one in outputs])
