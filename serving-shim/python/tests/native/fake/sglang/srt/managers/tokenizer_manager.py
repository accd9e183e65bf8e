"""Requests of clients, in the main process."""

import asyncio


class TokenizerManager:
    def __init__(self, to_scheduler, from_detokenizer):
        self.to_scheduler, self.from_detokenizer = to_scheduler, from_detokenizer

    async def generate_request(self, obj, request=None):
        self.to_scheduler.send((obj["rid"], obj["tokens"]))
        for _ in range(obj["tokens"]):
            yield await asyncio.to_thread(self.from_detokenizer.recv)
