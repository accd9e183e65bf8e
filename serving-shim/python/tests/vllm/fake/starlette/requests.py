import json


class Request:
    def __init__(self, receive):
        self.receive = receive

    async def body(self):
        if not hasattr(self, "_body"):
            self._body = (await self.receive())["body"]
        return self._body

    async def json(self):
        return json.loads(await self.body())
