from vllm import without


@without
class LLMEngine:
    def __init__(self):
        pass
