"""Compares every slice of a device with the simulator's log: process, device, stream, order, name, launch, arrow, start and end."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from merged import Slice, Span, Trace
from truth import Task

#: Rounding error of a duration: times in the trace are µs with 3 digits.
ROUNDED_NS = 1.5


def problems_of_slices(trace: Trace, tasks: list[Task]) -> Iterator[str]:
    """Yields the problems of the devices' slices."""
    arrows, launched = trace.arrows(), defaultdict(list)
    for task in tasks:
        launched[task.pid, task.tid].append(task)
    matched: dict[tuple, list[tuple[Slice, Task]]] = defaultdict(list)
    for slice in trace.slices:
        what = f"{slice.span.name} (launch {slice.launch} of {slice.place})"
        host = trace.hosts.get((slice.place[0], slice.launch))
        if host is None:
            yield f"{what}: no span on the host"
            continue
        begins = arrows.get((slice.span.pid, slice.span.tid, slice.span.begin_ns), [])
        if not any(begin[:2] == (host.pid, host.tid) and _within(begin[2], host) for begin in begins):
            yield f"{what}: no arrow from its launch: {begins}"
        submitted = [task for task in launched[host.pid, host.tid] if _within(task.launch_ns, host)]
        if len(submitted) != 1:
            yield f"{what}: {len(submitted)} tasks were submitted during its launch"
            continue
        matched[slice.place].append((slice, submitted[0]))
        yield from (f"{what} {problem}" for problem in _problems_of_slice(slice, submitted[0]))
    for place, pairs in matched.items():
        yield from (f"{place}: {problem}" for problem in _problems_of_order(pairs))


def problems_of_records(trace: Trace, records: Counter, device: str) -> list[str]:
    """Yields the problems of MSPTI's records. Each must be on its stream's track once if `device`, the value of SA_PROFILE_DEVICE, asks for MSPTI. Otherwise there must be no records."""
    if "mspti" not in device:
        return [f"{trace.records.total()} slices by records of MSPTI"] if trace.records else []
    problems = [f"{what[1]} {what[2]} of {what[0]}: {trace.records[what]} slices by records of MSPTI, not {records[what]}" for what in records | trace.records if trace.records[what] != records[what]]
    return problems if records else ["MSPTI has no records"]


def _within(time_ns: float, host: Span) -> bool:
    return host.begin_ns - ROUNDED_NS <= time_ns <= host.end_ns + ROUNDED_NS


def _problems_of_slice(slice: Slice, task: Task) -> Iterator[str]:
    if (slice.place, slice.span.name) != (task.place, task.name):
        yield f"is really {task.name} of {task.place}"
    kernels = [name for entry in slice.span.args.get("kernels", []) for name in _repeated(entry)]
    if kernels != _grouped(task.kernels):
        yield f"has the kernels {kernels}, its graph {list(task.kernels)}"
    uncertainty_ns = slice.span.args["uncertainty_us"] * 1e3
    for end, shown_ns, true_ns in (("starts", slice.span.begin_ns, task.begin_ns), ("ends", slice.span.end_ns, task.end_ns)):
        error_ns = abs(shown_ns - true_ns)
        if error_ns > uncertainty_ns + ROUNDED_NS:
            yield f"{end} {error_ns / 1e3:.3f} µs off, with ± {uncertainty_ns / 1e3:.3f} µs stated"


def _repeated(entry: str) -> list[str]:
    """Returns the kernels in a graph's list, in which `name ×5` means five of them."""
    name, _, count = entry.partition(" ×")
    return [name] * int(count or 1)


def _grouped(kernels: Sequence[str]) -> list[str]:
    return [name for group in dict.fromkeys(kernels) for name in kernels if name == group]


def _problems_of_order(pairs: list[tuple[Slice, Task]]) -> Iterator[str]:
    if len({task.launch_ns for _, task in pairs}) != len(pairs):
        yield "two slices of one task"
    shown = [task.launch_ns for _, task in sorted(pairs, key=lambda pair: pair[0].span.begin_ns)]
    if shown != sorted(shown):
        yield "the slices have another order than the tasks"
