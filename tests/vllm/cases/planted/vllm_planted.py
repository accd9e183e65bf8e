"""A vLLM plugin that slows down one part of a server. The file named by `VLLM_PLANTED` selects the part."""

import gc
import os
import time
from pathlib import Path

OBJECTS = 400_000  # a collection over this many objects takes tens of milliseconds
TOKENIZE_S = 1


def register():
    """Patches vLLM. vLLM calls this in each of its processes."""
    from vllm.renderers.base import BaseRenderer
    from vllm.v1.core.sched.scheduler import Scheduler

    planted = Path(os.environ["VLLM_PLANTED"])
    schedule, tokenize = Scheduler.schedule, BaseRenderer._tokenize_prompt
    kept = []

    def collect_and_schedule(self, *args, **kwargs):
        if planted.read_text() == "gc":
            if not kept:
                kept.extend([] for _ in range(OBJECTS))
            gc.collect()
        return schedule(self, *args, **kwargs)

    def wait_and_tokenize(self, *args, **kwargs):
        if planted.read_text() == "slow_tokenizer":
            time.sleep(TOKENIZE_S)
        return tokenize(self, *args, **kwargs)

    Scheduler.schedule = collect_and_schedule
    BaseRenderer._tokenize_prompt = wait_and_tokenize
