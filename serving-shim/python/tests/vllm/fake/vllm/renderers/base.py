import asyncio


class BaseRenderer:
    async def render_chat_async(self, conversations):
        prompts = [await self.render_messages_async(one) for one in conversations]
        return await self.tokenize_prompts_async(prompts)

    async def tokenize_prompts_async(self, prompts):
        return await asyncio.gather(*(asyncio.to_thread(self._tokenize_prompt, one) for one in prompts))

    def _tokenize_prompt(self, prompt):
        return [ord(letter) for letter in prompt]
