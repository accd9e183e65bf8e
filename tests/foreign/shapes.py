"""Traces in the shapes that other profilers write, generated from a model that the oracle computes with.

A model contains the kernels of devices, the spans of threads, and the launches. A shape writes it like one profiler would, with the additions of that profiler:
annotations on a device's tracks, tracks that sum up others, labels, ids as strings, trailing objects. Times are integer nanoseconds.
"""

import json
import re
from dataclasses import dataclass, field

BASE_NS = 1_790_857_026_000_000_000


@dataclass
class Model:
    """Work, spans and launches of a trace."""

    # Device → start and end of each kernel, copy and collective.
    work: dict = field(default_factory=dict)
    # Thread → name, start and end of each nested span.
    spans: dict = field(default_factory=dict)
    # Thread → spans that overlap another one without nesting, and therefore get a separate track.
    apart: dict = field(default_factory=dict)
    # Device → start and end of the launch, start of its kernel.
    launches: dict = field(default_factory=dict)
    # Names that the report must use for processes.
    processes: set = field(default_factory=set)
    files: list = field(default_factory=list)


class Number(str):
    """Digits that become a JSON number, because a float would have too few of them."""


def us(ns):
    """Returns a time as a number of microseconds with three decimals."""
    return Number(f"@@{ns // 1000}.{ns % 1000:03d}@@")


def text_us(ns):
    """Returns a time as a string, as torch_npu writes it."""
    return f"{ns // 1000}.{ns % 1000:03d}"


def dump(value, indent=None):
    """Returns JSON in which each `Number` is a number."""
    return re.sub(r'"@@([0-9.]+)@@"', r"\1", json.dumps(value, indent=indent))


def nested(rng, start, end, depth, names):
    """Yields name, start and end of nested spans between two times."""
    at = start + rng.randrange(1, 500)
    while at < end - 2000 and rng.random() < 0.9:
        stop = min(at + rng.randrange(1000, max((end - start) // 2, 1001)), end - rng.randrange(1, 500))
        if stop <= at:
            return
        yield rng.choice(names), at, stop
        if depth:
            yield from nested(rng, at, stop, depth - 1, names)
        at = stop + rng.randrange(1, 3000)


def kernels(rng, streams, count, start=20_000):
    """Returns stream, start, end, and the start and end of the launch, of kernels. Kernels on the same stream do not overlap."""
    free, found, host = dict.fromkeys(streams, start), [], 0
    for _ in range(count):
        stream = rng.choice(streams)
        host += rng.randrange(500, 6000)
        launch_end = host + rng.randrange(200, 3000)
        begin = max(launch_end + rng.randrange(1, 9000), free[stream])
        end = begin + rng.randrange(500, 15_000)
        free[stream] = end + rng.choice([0, 0, rng.randrange(1, 30_000)])
        found.append((stream, begin, end, host, launch_end))
        host = launch_end
    return found


def metadata(kind, pid, tid, **args):
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": args}


def complete(name, pid, tid, begin, end, cat=None, **args):
    event = {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": us(begin), "dur": us(end - begin)}
    return event | ({"cat": cat} if cat else {}) | ({"args": args} if args else {})


# Kineto


def kineto_events(rng, model, pid, device, base, prefix="", labels=True):
    """Adds one process and its GPU, as torch.profiler writes them."""
    gpu = f"{prefix}{device}" if prefix else device
    host = f"{prefix}{pid}" if prefix else pid
    events = [metadata("process_name", host, 0, name="python3"), metadata("process_name", gpu, 0, name="python3")]
    if labels:
        events += [metadata("process_labels", host, 0, labels="CPU"), metadata("process_labels", gpu, 0, labels=f"GPU {device}")]
    thread = model.spans.setdefault((host, pid), [])
    for name, begin, end in nested(rng, 0, 400_000, 3, ["aten::mm", "aten::add", "forward", "decode"]):
        events.append(complete(name, host, pid, begin, end, "cpu_op"))
        thread.append((name, begin, end))
    found = kernels(rng, [7, 20], 30)
    work = model.work.setdefault(gpu, [])
    launches = model.launches.setdefault(gpu, [])
    runtime = model.spans.setdefault((host, pid + 1), [])
    for number, (stream, begin, end, launch, launch_end) in enumerate(found):
        kind = rng.choice(["kernel", "kernel", "gpu_memcpy", "gpu_memset"])
        call = {"kernel": "cudaLaunchKernel", "gpu_memcpy": "cudaMemcpyAsync", "gpu_memset": "cudaMemsetAsync"}[kind]
        correlation = base + number
        events.append(complete(call, host, pid + 1, launch, launch_end, "cuda_runtime", correlation=correlation))
        events.append(complete(f"{kind}_{number % 3}", gpu, stream, begin, end, kind, correlation=correlation, stream=stream, device=device))
        events.append({"ph": "s", "id": correlation, "pid": host, "tid": pid + 1, "ts": us(launch), "cat": "ac2g", "name": "ac2g"})
        events.append({"ph": "f", "id": correlation, "pid": gpu, "tid": stream, "ts": us(begin), "cat": "ac2g", "name": "ac2g", "bp": "e"})
        runtime.append((call, launch, launch_end))
        work.append((begin, end))
        launches.append((launch, launch_end, begin))
    # torch repeats these regions on the GPU's tracks, including the idle time inside.
    first, last = min(begin for _, begin, *_ in found), max(end for _, _, end, *_ in found)
    for stream in (7, 20):
        mine = [one for one in found if one[0] == stream]
        if mine:
            events.append(complete("ProfilerStep#6", gpu, stream, min(first, mine[0][1]), last, "gpu_user_annotation"))
    # torch puts spans of unknown threads under process 0.
    if device == 0 and not prefix and labels:
        events.append(complete("threading.py(323): wait", 0, 4242, 1, 390_000, "python_function"))
    return events


def kineto(rng, folder, labels=True):
    """Writes one process of torch.profiler with one to three GPUs."""
    model, events = Model(), []
    for device in range(rng.choice([1, 2, 3])):
        events += kineto_events(rng, model, 4100 + 10 * device, device, 1000 * device, labels=labels)
    events.append(complete("PyTorch Profiler (0)", "Spans", "PyTorch Profiler", 0, 400_000, "Trace"))
    events.append({"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": us(400_000)})
    rng.shuffle(events)
    trace = {"schemaVersion": 1, "baseTimeNanoseconds": BASE_NS, "displayTimeUnit": "ms", "traceEvents": events}
    return written(model, folder, "host.4100.pt.trace.json", dump(trace, indent=2))


def kineto_without_labels(rng, folder):
    """Writes a trace from which a tool removed the labels. Only the categories show what runs on a GPU."""
    return kineto(rng, folder, labels=False)


def sglang_merged(rng, folder):
    """Writes SGLang's merged profile: one file with the rank as text in front of each id."""
    model, events = Model(), []
    for rank in range(rng.choice([2, 4])):
        prefix = f"[TP{rank:02d}-DP00] "
        events += kineto_events(rng, model, 41_000 + rank, rank, 10_000 * rank, prefix=prefix)
        model.processes |= {f"[TP{rank:02d}-DP00]"}
    trace = {"baseTimeNanoseconds": BASE_NS, "traceEvents": events, "distributedInfo": {"rank": 0, "world_size": 4}}
    return written(model, folder, "merged-1790857026.trace.json", dump(trace))


def kineto_ranks(rng, folder):
    """Writes one file per rank, with its number in `distributedInfo`."""
    model = Model()
    for rank in range(rng.choice([2, 3])):
        events = kineto_events(rng, model, 5000 + 10 * rank, rank, 1000 * rank)
        trace = {"baseTimeNanoseconds": BASE_NS, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 3}, "traceEvents": events}
        written(model, folder, f"rank-{rank}.pt.trace.json", dump(trace))
        model.processes.add(f"rank {rank}")
    return model


# torch_npu and msprof


def npu_groups(device):
    """Returns name → process id of each group of one NPU."""
    names = ["Ascend Hardware", "Communication", "Overlap Analysis", "AI Core Freq"]
    return {name: 4_824_512 + 1000 * device + 32 * at for at, name in enumerate(names)}


def torch_npu_events(rng, model, device, communicates):
    """Adds one process and its NPU, as torch_npu writes them."""
    python, cann, groups = 4_000_000 + 100 * device, 4_000_032 + 100 * device, npu_groups(device)
    events = []
    for pid, name, label in [(python, "Python", "CPU"), (cann, "CANN", "CPU"), *((pid, name, f"NPU {device}") for name, pid in groups.items())]:
        if communicates or name != "Communication":
            events += [metadata("process_name", pid, 0, name=name), metadata("process_labels", pid, 0, labels=label)]
    hardware, overlap = groups["Ascend Hardware"], groups["Overlap Analysis"]
    work, launches = model.work.setdefault(f"NPU {device}", []), model.launches.setdefault(f"NPU {device}", [])
    host, acl = model.spans.setdefault((python, 1), []), model.spans.setdefault((cann, 1), [])
    found = kernels(rng, [2, 3], 25)
    for number, (stream, begin, end, launch, launch_end) in enumerate(found):
        flow, connection = str(1_795_248_907_000_000_000 + 1000 * device + number), 1000 * device + 100 + number
        events.append(npu("aten::mm", python, 1, launch - 100, launch_end + 100, cat="cpu_op"))
        events.append(npu("AscendCL@aclnnMatmul", cann, 1, launch, launch_end, connection_id=connection, level="acl"))
        events.append(npu(f"MatMulV{number % 3}", hardware, stream, begin, end, connection_id=connection, **{"Task Type": "AI_CORE"}))
        events.append({"ph": "s", "name": f"HostToDevice{flow}", "id": flow, "pid": cann, "tid": 1, "ts": text_us(BASE_NS + launch), "cat": "HostToDevice"})
        events.append({"ph": "f", "name": f"HostToDevice{flow}", "id": flow, "pid": hardware, "tid": stream, "ts": text_us(BASE_NS + begin), "cat": "HostToDevice", "bp": "e"})
        host.append(("aten::mm", launch - 100, launch_end + 100))
        acl.append(("AscendCL@aclnnMatmul", launch, launch_end))
        work.append((begin, end))
        launches.append((launch, launch_end, begin))
    end = max(end for _, _, end, *_ in found)
    if communicates:
        for number in range(4):
            begin = end + rng.randrange(1, 5000)
            end = begin + rng.randrange(1000, 9000)
            events.append(npu(f"hcom_allReduce__{number}", groups["Communication"], 11, begin, end, count=1024))
            work.append((begin, end))
    # Tracks that sum up the others, and counters.
    events.append(npu("Computing", overlap, 0, found[0][1], end))
    events.append(npu("Free", overlap, 3, end, end + 5000))
    events.append({"ph": "C", "name": "AI Core Freq", "pid": groups["AI Core Freq"], "tid": 0, "ts": text_us(BASE_NS), "args": {"MHz": 1650}})
    return events


def npu(name, pid, tid, begin, end, cat=None, **args):
    event = {"name": name, "pid": pid, "tid": tid, "ts": text_us(BASE_NS + begin), "dur": us(end - begin), "ph": "X", "args": args}
    return event | ({"cat": cat} if cat else {})


def torch_npu(rng, folder, communicates=False):
    """Writes the trace_view.json of one process with one or two NPUs."""
    model, events = Model(), []
    for device in range(rng.choice([1, 2])):
        events += torch_npu_events(rng, model, device, communicates)
    return written(model, folder, "trace_view.json", dump(events))


def torch_npu_communicating(rng, folder):
    """Writes the same with a group for communication."""
    return torch_npu(rng, folder, communicates=True)


def msprof_slices(rng, folder):
    """Writes msprof's export of one process: two files, where the second continues the first."""
    model = Model()
    events = torch_npu_events(rng, model, 0, True)
    head = [event for event in events if event["ph"] == "M"]
    body = sorted((event for event in events if event["ph"] != "M"), key=lambda event: event["ts"])
    half = len(body) // 2
    written(model, folder, "msprof_slice_0_20261101.json", dump(head + body[:half]))
    return written(model, folder, "msprof_slice_1_20261101.json", dump(head + body[half:]))


# Others


def horovod(rng, folder):
    """Writes Horovod's timeline: an array that is never closed, a process per tensor, ends without names, waits of length zero."""
    model, lines = Model(), []
    for tensor in range(1, 5):
        lines.append(json.dumps(metadata("process_name", tensor, 0, name=f"DistributedAdam/tensor_{tensor}")))
        at, thread = 0, model.spans.setdefault((tensor, None), [])
        for _ in range(6):
            begin = at + 1000 * rng.randrange(1, 9)
            wait = begin + 1000 * rng.randrange(0, 4)
            end = wait + 1000 * rng.randrange(1, 90)
            for ph, name, ts in (("B", "ALLREDUCE", begin), ("B", "WAIT_FOR_DATA", wait), ("E", None, wait), ("E", None, end)):
                lines.append(json.dumps({"ph": ph, "ts": ts // 1000, "pid": tensor} | ({"name": name} if name else {})))
            thread += [("ALLREDUCE", begin, end), ("WAIT_FOR_DATA", wait, wait)]
            at = end
    return written(model, folder, "timeline.json", "[\n" + ",\n".join(lines) + ",\n")


def jax(rng, folder):
    """Writes JAX's trace.json: a TPU with tracks for steps, modules and operations, and an empty object at the end."""
    model = Model()
    events = [metadata("process_name", 701, 0, name="/host:CPU"), metadata("process_name", 3, 0, name="/device:TPU:0")]
    events += [metadata("thread_name", 3, tid, name=name) for tid, name in ((1, "Steps"), (2, "XLA Modules"), (3, "XLA Ops"))]
    work, at = model.work.setdefault("/device:TPU:0", []), 5000
    for step in range(5):
        begin = at
        for number in range(6):
            end = at + rng.randrange(500, 9000)
            events.append(complete(f"fusion.{number}", 3, 3, at, end, long_name="fusion"))
            work.append((at, end))
            at = end + rng.choice([0, rng.randrange(1, 4000)])
        events.append(complete("jit_step", 3, 2, begin, end))
        events.append(complete(str(step), 3, 1, begin, end))
        at = end + rng.randrange(1000, 20_000)
    thread = model.spans.setdefault((701, 1), [])
    for name, begin, end in nested(rng, 0, 300_000, 2, ["PjitFunction(step)", "ParseArguments"]):
        events.append(complete(name, 701, 1, begin, end))
        thread.append((name, begin, end))
    return written(model, folder, "host.trace.json", dump({"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": [*events, {}]}))


def viztracer(rng, folder):
    """Writes VizTracer's trace: spans in the order of their ends. A short span may end after its parent."""
    model = Model()
    events = [metadata("process_name", 77, 77, name="MainProcess"), metadata("thread_name", 77, 77, name="MainThread")]
    thread, apart = model.spans.setdefault((77, 77), []), model.apart.setdefault((77, 77), [])
    at = 1000
    for _ in range(4):
        thread += [("forward", at, at + 1_000_000), ("step", at + 20_000, at + 990_000)]
        apart.append(("__enter__", at + 10_000, at + 20_500))
        thread += list(nested(rng, at + 21_000, at + 980_000, 2, ["f", "g", "h"]))
        at += 1_100_000
    for name, begin, end in sorted(thread + apart, key=lambda one: one[2]):
        events.append(complete(name, 77, 77, begin, end, "FEE"))
    return written(model, folder, "result.json", dump({"traceEvents": events, "viztracer_metadata": {"version": "1.0"}}))


def written(model, folder, name, text):
    (folder / name).write_text(text)
    model.files.append(folder / name)
    return model


SHAPES = [kineto, kineto_without_labels, kineto_ranks, sglang_merged, torch_npu, torch_npu_communicating, msprof_slices, horovod, jax, viztracer]
