"""Does the work of each of vLLM's processes in a step, with the tests' fake vLLM. Each role runs requests and returns the thread CPU ns of a step. Import this after the plugin is registered."""

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
        """Runs steps until all requests have their tokens, and returns the ns of a step."""
        for one in ids:
            self._core.add_request(Request(EngineCoreRequest(one, PROMPT, tokens)))
        began, steps = now_ns(), 0
        while self._core.scheduler.has_requests():
            self._core.step_fn()
            steps += 1
        return (now_ns() - began) / steps


class Worker:
    """A worker. It unpickles each message, so that the objects are new, as in vLLM."""

    def __init__(self):
        self._wrapper = WorkerWrapperBase()
        self._wrapper.init_worker([{}])
        self._wrapper.worker.load()

    def run(self, _ids, messages, _tokens):
        """Runs the steps that the engine sends, and returns the ns of a step."""
        took = 0
        for message, _ in messages:
            scheduled = pickle.loads(message)
            began = now_ns()
            self._wrapper.execute_model(scheduled)
            took += now_ns() - began
        return took / len(messages)


class OutputProcessor:
    """The API server's output processor in a task, including the turn of the event loop in which it sends a step's outputs."""

    def __init__(self):
        self._processor = Processor()
        self._loop = asyncio.new_event_loop()

    def run(self, ids, messages, tokens):
        """Runs the steps that the engine sends, and returns the ns of a step."""
        return self._loop.run_until_complete(self._run(ids, messages, tokens))

    async def _run(self, ids, messages, tokens):
        for one in ids:
            self._processor.add_request(EngineCoreRequest(one, PROMPT, tokens), None)
        took = 0
        for _, message in messages:
            group = pickle.loads(message)
            began = now_ns()
            self._processor.process_outputs(group.outputs, group.timestamp)
            await asyncio.sleep(0)
            took += now_ns() - began
        return took / len(messages)
