"""Python recorders, measured as the Rust ones are: rounds of the floor, an empty loop and the case, in turn.

usage: recorders.py cost CASE SPANS ROUNDS FILE     prints ROUND <ns> <floor_ns> per round, and DISK <spans> <bytes>
       recorders.py victim CASE COUNT FILE          records until it or its parent is killed, acknowledging each span in the file COUNT
"""

import mmap
import os
import struct
import sys
import time

WARM_ROUNDS = 2
# The most that a victim records: it ends by itself where nobody kills it.
MOST_SPANS = 5_000_000


class Nothing:
    """A context manager that records nothing."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def nothing():
    return Nothing, None


def viztracer(path):
    import viztracer

    # Events that the program logs, without the automatic ones.
    tracer = viztracer.VizTracer(output_file=path, verbose=0, max_stack_depth=0)
    tracer.start()

    def save():
        tracer.stop()
        tracer.save(path)

    return lambda: tracer.log_event("decode"), save


def torch(path, profiling):
    import torch.profiler

    def span():
        return torch.profiler.record_function("decode")

    if not profiling:
        return span, None
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    profiler.start()

    def save():
        profiler.stop()
        profiler.export_chrome_trace(path)

    return span, save


def recorder(case, path):
    """Returns what opens a span, and what saves the file."""
    if case == "nothing":
        return nothing()
    if case == "viztracer":
        return viztracer(path)
    if case in ("torch-idle", "torch-profiling"):
        return torch(path, case == "torch-profiling")
    raise SystemExit(f"recorders.py: no case {case}")


def timed(body, count):
    """Runs the loop and returns its ns per turn."""
    start = time.perf_counter_ns()
    body(count)
    return (time.perf_counter_ns() - start) / count


def empty(count):
    for _ in range(count):
        pass


def two_reads(count):
    now = time.monotonic_ns
    for _ in range(count):
        now()
        now()


def cost(case, spans, rounds, path):
    span, save = recorder(case, path)

    def record(count):
        for _ in range(count):
            with span():
                pass

    for _ in range(WARM_ROUNDS):
        record(spans)
    for _ in range(rounds):
        before = timed(two_reads, spans)
        with_span = timed(record, spans)
        loop = timed(empty, spans)
        after = timed(two_reads, spans)
        print(f"ROUND {with_span - loop} {(before + after) / 2 - loop}")
    if save:
        save()
        print(f"DISK {spans * (rounds + WARM_ROUNDS)} {os.path.getsize(path)}")


def victim(case, count_file, path):
    span, _ = recorder(case, path)
    with open(count_file, "r+b") as file:
        count = mmap.mmap(file.fileno(), 8)
    parent = os.getppid()
    for step in range(1, MOST_SPANS):
        with span():
            pass
        count[0:8] = struct.pack("=Q", step)
        if os.getppid() != parent:
            break


def main(arguments):
    if len(arguments) == 5 and arguments[0] == "cost":
        _, case, spans, rounds, path = arguments
        cost(case, int(spans), int(rounds), path)
    elif len(arguments) == 4 and arguments[0] == "victim":
        victim(*arguments[1:])
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
