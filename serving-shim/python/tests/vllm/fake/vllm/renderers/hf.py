import asyncio

from vllm.renderers.base import BaseRenderer


def safe_apply_chat_template(conversation):
    return "".join(conversation)


class HfRenderer(BaseRenderer):
    async def render_messages_async(self, messages):
        return await asyncio.to_thread(safe_apply_chat_template, messages)
