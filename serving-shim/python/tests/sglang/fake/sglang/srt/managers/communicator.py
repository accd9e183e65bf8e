import asyncio


class FanOutCommunicator:
    """Sends a request to all schedulers and waits for their answers."""

    def __init__(self, send, fan_out, mode="queueing"):
        self._send, self._fan_out = send, fan_out
        self._values, self._event = [], None

    async def __call__(self, obj):
        self._values, self._event = [], asyncio.Event()
        self._send(obj)
        await self._event.wait()
        return self._values

    def handle_recv(self, recv_obj):
        self._values.append(recv_obj)
        if len(self._values) == self._fan_out:
            self._event.set()
