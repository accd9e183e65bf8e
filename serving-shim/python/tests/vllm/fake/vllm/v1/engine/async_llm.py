import asyncio
import time

from vllm.v1.engine.input_processor import InputProcessor
from vllm.v1.engine.output_processor import OutputProcessor


class AsyncLLM:
    """A client with the engine core in the same process. It passes new requests to `send`."""

    def __init__(self, send):
        self.input_processor = InputProcessor()
        self.output_processor = OutputProcessor()
        self.send = send
        self.aborted = []

    async def add_request(self, request_id, prompt, params, arrival_time=None):
        request = self.input_processor.process_inputs(request_id, prompt, params, arrival_time or time.time())
        if hasattr(self.input_processor, "assign_request_id"):
            self.input_processor.assign_request_id(request)
        queue = asyncio.Queue()
        self.output_processor.add_request(request, None, None, 0, queue)
        await asyncio.sleep(0)
        self.send(request)
        queue.request_id = request.request_id
        return queue

    async def generate(self, prompt, sampling_params, request_id, *, priority=0):
        queue = None
        try:
            queue = await self.add_request(request_id, prompt, sampling_params)
            finished = False
            while not finished:
                item = await queue.get()
                if isinstance(item, Exception):
                    raise item
                output, finished = item
                yield output
        except (asyncio.CancelledError, GeneratorExit):
            if queue is not None:
                await self.abort(queue.request_id)
            raise

    async def encode(self, prompt, pooling_params, request_id):
        async for output in self.generate(prompt, pooling_params, request_id):
            yield output

    async def abort(self, request_id):
        self.aborted.extend(self.output_processor.abort_requests([request_id], True))

    async def start_profile(self, profile_prefix=None):
        return None

    async def stop_profile(self):
        return None
