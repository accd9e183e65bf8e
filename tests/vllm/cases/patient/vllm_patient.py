"""A plugin of vLLM for measurements: a process that waits for another one at their shared memory sleeps between two looks.

vLLM's yields its core and looks again at once. It takes the core from the others in no regular way then, which hides small
differences of throughput, and its CPU time says nothing.
"""

import time

BETWEEN_LOOKS_S = 50e-6  # at least: the kernel adds its slack


def register():
    from vllm.distributed.device_communicators import shm_broadcast

    if not callable(getattr(shm_broadcast, "sched_yield", None)):
        raise AttributeError("this vLLM's shm_broadcast has no sched_yield: it cannot be made to wait patiently")
    shm_broadcast.sched_yield = lambda: time.sleep(BETWEEN_LOOKS_S)
    print("vllm_patient: in force", flush=True)
