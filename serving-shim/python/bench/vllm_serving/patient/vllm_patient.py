"""A plugin of vLLM for measurements: a process that waits for a message in shared memory sleeps between two looks.

vLLM's yields its core and looks again at once. It takes the core from the others in no regular way then, which hides small
differences of throughput, and its CPU time says nothing.
"""

import time

BETWEEN_LOOKS_S = 50e-6


def register():
    from vllm.distributed.device_communicators import shm_broadcast

    shm_broadcast.sched_yield = lambda: time.sleep(BETWEEN_LOOKS_S)
