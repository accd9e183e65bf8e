import itertools

from vllm.renderers.hf import HfRenderer


class OpenAIServingChat:
    def __init__(self, client):
        self.client, self.renderer = client, HfRenderer()
        self.numbers = itertools.count()

    async def create_chat_completion(self, request, raw_request=None):
        (prompt,) = await self.renderer.render_chat_async([request])
        return self.client.generate(prompt, 3, f"chatcmpl-{next(self.numbers)}")
