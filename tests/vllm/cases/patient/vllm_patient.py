"""A vLLM plugin for measurements: a process that waits for another one at their shared memory sleeps between two checks.

Without it, vLLM yields its core and checks again immediately. It then competes with the other processes in irregular ways, which hides small
differences of throughput, and its CPU time is meaningless.
"""

import time

BETWEEN_CHECKS_S = 50e-6  # minimum, because the kernel adds its timer slack


def register():
    from vllm.distributed.device_communicators import shm_broadcast

    if not callable(getattr(shm_broadcast, "sched_yield", None)):
        raise AttributeError("this vLLM's shm_broadcast has no sched_yield: cannot make it sleep while it waits")
    shm_broadcast.sched_yield = lambda: time.sleep(BETWEEN_CHECKS_S)
    print("vllm_patient: in force", flush=True)
