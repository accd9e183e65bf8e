"""Does the work of each of vLLM's processes, with the tests' fake vLLM. Each role runs requests and returns the thread CPU ns. Import this after the plugin is registered."""

import asyncio
import pickle
import time

from vllm.v1.core.sched.scheduler import Request, Scheduler
from vllm.v1.engine import EngineCoreRequest
from vllm.v1.engine.core import EngineCore
from vllm.v1.engine.output_processor import OutputProcessor as Processor
from vllm.v1.executor.executor import Executor, answer
from vllm.v1.worker.worker_base import WorkerWrapperBase

PROMPT = list(range(20))
now_ns = time.thread_time_ns


def messages(ids, tokens):
    """Returns the messages that an engine without the plugin sends in each step: to the workers and to the API server."""
    scheduler = Scheduler()
    for one in ids:
        scheduler.add_request(Request(EngineCoreRequest(one, PROMPT, tokens)))
    sent = []
    while scheduler.has_requests():
        scheduled = scheduler.schedule()
        (group,) = scheduler.update_from_output(scheduled, answer(scheduled)).values()
        sent.append((pickle.dumps(scheduled), pickle.dumps(group)))
    return sent


class Engine:
    """The engine. Its executor answers at once."""

    def __init__(self):
        self._core = EngineCore(Scheduler(), Executor())

    def run(self, ids, _messages, tokens):
        """Adds requests, and runs steps until all of them have their tokens."""
        requests = [Request(EngineCoreRequest(one, PROMPT, tokens)) for one in ids]
        began = now_ns()
        for request in requests:
            self._core.add_request(request)
        while self._core.scheduler.has_requests():
            self._core.step_fn()
        return now_ns() - began


class Worker:
    """A worker. It unpickles each message, so that the objects are new, as in vLLM."""

    def __init__(self):
        self._wrapper = WorkerWrapperBase()
        self._wrapper.init_worker([{}])
        self._wrapper.worker.load()

    def run(self, _ids, messages, _tokens):
        """Runs the steps that the engine sends."""
        took = 0
        for message, _ in messages:
            scheduled = pickle.loads(message)
            began = now_ns()
            self._wrapper.execute_model(scheduled)
            took += now_ns() - began
        return took


class OutputProcessor:
    """The API server's output processor in a task, including the turn of the event loop in which it sends a step's outputs."""

    def __init__(self):
        self._processor = Processor()
        self._loop = asyncio.new_event_loop()

    def run(self, ids, messages, tokens):
        """Adds requests, and processes the outputs that the engine sends."""
        return self._loop.run_until_complete(self._run(ids, messages, tokens))

    async def _run(self, ids, messages, tokens):
        requests = [EngineCoreRequest(one, PROMPT, tokens) for one in ids]
        began = now_ns()
        for request in requests:
            self._processor.add_request(request, None)
        took = now_ns() - began
        for _, message in messages:
            group = pickle.loads(message)
            began = now_ns()
            self._processor.process_outputs(group.outputs, group.timestamp)
            await asyncio.sleep(0)
            took += now_ns() - began
        return took


ROLES = {"engine": Engine, "worker": Worker, "output": OutputProcessor}
