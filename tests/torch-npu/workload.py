"""A small version of a serving worker's use of torch_npu: runs one of the scenarios below. Its output is the same with and without recording."""

import os
import signal
import sys
import time

import torch

ROUNDS = 20


def eager() -> None:
    """Launches kernels in three streams, which wait for each other by events, and copies between them."""
    numbers = torch.arange(8, dtype=torch.int32).npu()
    square = torch.ones(16, 16, device="npu")
    side, third = torch.npu.Stream(), torch.npu.Stream()
    pinned, back = torch.arange(8, dtype=torch.int32).pin_memory(), torch.zeros(8, dtype=torch.int32).pin_memory()
    begin, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    begin.record()
    for _ in range(ROUNDS):
        torch.relu(torch.matmul(square, square) + square)
        with torch.npu.stream(side):
            numbers.add_(1)
            ready = side.record_event()
        third.wait_event(ready)
        with torch.npu.stream(third):
            back.copy_(numbers, non_blocking=True)
            square.npu().mul_(2)
        torch.npu.current_stream().wait_stream(third)
    end.record()
    numbers.copy_(pinned, non_blocking=True)
    torch.npu.synchronize()
    print("timed", begin.elapsed_time(end) > 0, back.tolist(), numbers.tolist())


def kernels() -> None:
    """Replays two graphs alternately, with kernels of two streams each, and launches kernels in between. The number of kernels in a graph is not checked."""
    numbers = torch.arange(8, dtype=torch.int32).npu()
    square = torch.ones(16, 16, device="npu")
    side = torch.npu.Stream()
    graphs = [torch.npu.NPUGraph(), torch.npu.NPUGraph()]
    for captured in graphs:
        with torch.npu.graph(captured):
            numbers.add_(1)
            torch.softmax(torch.matmul(square, square), 1)
            side.wait_stream(torch.npu.current_stream())
            with torch.npu.stream(side):
                torch.relu(square)
            torch.npu.current_stream().wait_stream(side)
    for _ in range(ROUNDS):
        for captured in graphs:
            captured.replay()
            square.mul_(2)
    torch.npu.synchronize()
    print("replayed", numbers.tolist())


def marks() -> None:
    """Makes mstx ranges and marks on the host and in a stream."""
    mstx, square = torch.npu.mstx, torch.ones(16, 16, device="npu")
    mstx.mark("begin")
    for _ in range(ROUNDS):
        step = mstx.range_start("step", torch.npu.current_stream())
        part = mstx.range_start("part", domain="own")
        square.mul_(2)
        mstx.range_end(part, "own")
        mstx.range_end(step)
    mstx.mark("on the stream", torch.npu.current_stream(), domain="own")
    torch.npu.synchronize()
    print("marked")


def collectives() -> None:
    """Runs one of two ranks. The simulated ranks do not wait for each other."""
    from torch import distributed

    rank = int(os.environ["RANK"])
    torch.npu.set_device(rank)
    distributed.init_process_group("hccl")
    numbers = torch.ones(1024, device="npu")
    both, half = torch.empty(2048, device="npu"), torch.empty(512, device="npu")
    for _ in range(ROUNDS):
        distributed.all_reduce(numbers)
        distributed.all_gather_into_tensor(both, numbers)
        distributed.reduce_scatter_tensor(half, numbers)
        distributed.broadcast(numbers, 0)
        distributed.all_to_all_single(both, torch.relu(both))
        numbers.mul_(2)
    distributed.barrier()
    torch.npu.synchronize()
    print("rank", rank, "is done", flush=True)
    distributed.destroy_process_group()


def exception() -> None:
    """Launches a kernel that fails on the device. A later call returns the error."""
    square = torch.ones(16, 16, device="npu")
    for _ in range(10):
        torch.matmul(square, square)
    torch.npu.synchronize()
    time.sleep(0.5)  # so that the recorder reads the times of these kernels before the device fails
    try:
        for _ in range(ROUNDS):
            torch.matmul(square, square)
        torch.npu.synchronize()
        print("no error")
    except RuntimeError as error:
        print("caught", type(error).__name__, "507015" in str(error))


def updated() -> None:
    """Replays a graph with a group of tasks that is updated before each replay, as vLLM-Ascend updates attention."""
    numbers = torch.arange(8, dtype=torch.int32).npu()
    square = torch.ones(16, 16, device="npu")
    side = torch.npu.Stream()
    captured = torch.npu.NPUGraph()
    with torch.npu.graph(captured):
        torch.npu.graph_task_group_begin(torch.npu.current_stream())
        torch.matmul(square, square)
        group = torch.npu.graph_task_group_end(torch.npu.current_stream())
        numbers.add_(1)
    for _ in range(ROUNDS):
        with torch.npu.stream(side):
            torch.npu.graph_task_update_begin(side, group)
            torch.matmul(square, square)
            torch.npu.graph_task_update_end(side)
            square.mul_(2)
        captured.replay()
        torch.npu.synchronize()
    print("updated", numbers.tolist())


def killed() -> None:
    """Is killed half a second after all launched work has ended. The recorder has read the times by then."""
    square = torch.ones(16, 16, device="npu")
    for _ in range(ROUNDS):
        square.mul_(2)
        torch.relu(square)
    torch.npu.synchronize()
    time.sleep(0.5)
    print("killed", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


SCENARIOS = {scenario.__name__: scenario for scenario in (eager, updated, kernels, marks, collectives, exception, killed)}

if __name__ == "__main__":
    SCENARIOS[sys.argv[1]]()
