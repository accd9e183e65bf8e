"""What the processes of vLLM do in each step, on the tests' stand-ins: each runs requests, and returns the thread CPU ns of a step. Imported once the plugin is registered."""

import asyncio
import pickle
import socket
import time
from types import SimpleNamespace

from sa_profile._hooks.chain import is_chained
from sa_profile._http import asgi, uvicorn
from vllm.v1.core.sched.scheduler import Request, Scheduler
from vllm.v1.engine import EngineCoreRequest
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.core import EngineCore
from vllm.v1.engine.output_processor import OutputProcessor as Processor
from vllm.v1.executor.executor import Executor, answer
from vllm.v1.worker.worker_base import WorkerWrapperBase

PROMPT = list(range(20))
now_ns = time.thread_time_ns


def messages(ids, tokens):
    """What an engine without the plugin sends in each step: to the workers, and to the API server."""
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
    """The engine: its executor answers at once."""

    def __init__(self):
        self._core = EngineCore(Scheduler(), Executor())

    def run(self, ids, _messages, tokens):
        """Steps until all have their tokens."""
        for one in ids:
            self._core.add_request(Request(EngineCoreRequest(one, PROMPT, tokens)))
        began, steps = now_ns(), 0
        while self._core.scheduler.has_requests():
            self._core.step_fn()
            steps += 1
        return (now_ns() - began) / steps


class Worker:
    """A worker: what it takes from a message is as new as in vLLM."""

    def __init__(self):
        self._wrapper = WorkerWrapperBase()
        self._wrapper.init_worker([{}])
        self._wrapper.worker.load()

    def run(self, _ids, messages, _tokens):
        """Steps as the engine sends them."""
        took = 0
        for message, _ in messages:
            scheduled = pickle.loads(message)
            began = now_ns()
            self._wrapper.execute_model(scheduled)
            took += now_ns() - began
        return took / len(messages)


class OutputProcessor:
    """The API server's output processor, in a task, with the turn of the event loop in which it sends what a step brought."""

    def __init__(self):
        self._processor = Processor()
        self._loop = asyncio.new_event_loop()

    def run(self, ids, messages, tokens):
        """Steps as the engine sends them."""
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


class Protocol:
    """uvicorn's protocol of a connection, up to the scope of a request."""

    def __init__(self, transport):
        self.transport = transport
        self.scope = None

    def on_message_begin(self):
        headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"content-length", b"200")]
        self.scope = {"type": "http", "method": "POST", "path": "/v1/completions", "headers": headers}


class Transport:
    """The connection of a protocol: a socket whose client has sent something."""

    def __init__(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self._client = socket.create_connection(listener.getsockname())
            self._socket, _ = listener.accept()
        self._client.send(b"POST")
        self._socket.recv(4)

    def get_extra_info(self, _name):
        return self._socket


class Frontend:
    """The API server from a request's first byte to the end of its streamed answer."""

    START = {"type": "http.response.start", "status": 200, "headers": []}
    CHUNK = {"type": "http.response.body", "body": b"data: token", "more_body": True}
    END = {"type": "http.response.body", "body": b"", "more_body": False}

    def __init__(self):
        self._client = AsyncLLM(lambda _request: None)
        self._app = self._answer
        if is_chained(AsyncLLM.add_request):  # as the plugin hooks uvicorn
            uvicorn.hook_protocol(SimpleNamespace(HttpToolsProtocol=Protocol))
            self._app = asgi.HttpSpans(self._answer, holds_spans=False)
        self._loop = asyncio.new_event_loop()
        self._transport = Transport()

    def run(self, ids, tokens):
        """Answers these requests, all at once, and returns the thread CPU ns of a request."""
        internal = [f"{one}-1a2b3c4d" for one in ids]  # as the processor names them
        groups = [pickle.loads(message) for _, message in messages(internal, tokens)]
        return self._loop.run_until_complete(self._serve(ids, groups)) / len(ids)

    async def _serve(self, ids, groups):
        began = now_ns()
        tasks = []
        for one in ids:
            protocol = Protocol(self._transport)
            protocol.on_message_begin()
            protocol.scope["request_id"] = one
            tasks.append(asyncio.create_task(self._app(protocol.scope, self._receive, self._send)))
        processor = self._client.output_processor
        while len(processor.queues) < len(ids):
            await asyncio.sleep(0)
        for group in groups:
            processor.process_outputs(group.outputs, group.timestamp)
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        return now_ns() - began

    async def _answer(self, scope, receive, send):
        await receive()
        queue = await self._client.add_request(scope["request_id"], PROMPT, None)
        await send(self.START)
        finished = False
        while not finished:
            _, finished = await queue.get()
            await send(self.CHUNK)
        await send(self.END)

    async def _receive(self):
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def _send(self, message):
        pass
