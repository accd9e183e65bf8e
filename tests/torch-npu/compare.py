"""Every slice of a device against what the device really did: its process, device, stream, order, name, launch, arrow, start and end."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles

from merged import Slice, Trace
from truth import Task

#: Times in the trace have 3 digits of a µs, at each end.
ROUNDED_NS = 1.5


@dataclass
class Result:
    tasks: int = 0
    slices: int = 0
    wrong: list[str] = field(default_factory=list)
    start_errors_ns: list[float] = field(default_factory=list)
    end_errors_ns: list[float] = field(default_factory=list)
    uncertainties_ns: list[float] = field(default_factory=list)
    #: What of each slice is not its task, but the way between the two events and the task.
    around_ns: list[float] = field(default_factory=list)

    def summary(self) -> str:
        if not self.slices:
            return f"{self.tasks} tasks, no slice"
        start, end = (f"p50 {median(errors) / 1e3:.2f} p99 {quantiles([*errors, errors[-1]], n=100)[98] / 1e3:.2f} µs" for errors in (self.start_errors_ns, self.end_errors_ns))
        return f"{self.slices} slices of {self.tasks} tasks; start off by {start}, end by {end}, stated p50 {median(self.uncertainties_ns) / 1e3:.2f} µs; beside the task p50 {median(self.around_ns) / 1e3:.2f} µs"


def compare(trace: Trace, tasks: list[Task]) -> Result:
    result = Result(len(tasks), len(trace.slices))
    arrows, launched = trace.arrows(), _by_thread(tasks)
    matched: dict[tuple, list[tuple[Slice, Task]]] = defaultdict(list)
    for slice in trace.slices:
        task = _check_launch(trace, slice, arrows, launched, result)
        if task:
            matched[slice.place].append((slice, task))
            _check_slice(slice, task, result)
    for place, pairs in matched.items():
        _check_order(place, pairs, result)
    return result


def problems_of_records(trace: Trace, records: Counter, device: str) -> list[str]:
    """Each record must be on the row of its stream once if `device`, the value of SA_PROFILE_DEVICE, asks for MSPTI. Otherwise there must be no records."""
    if "mspti" not in device:
        return [f"{trace.records.total()} slices by records of MSPTI"] if trace.records else []
    problems = [f"{what[1]} {what[2]} of {what[0]}: {trace.records[what]} slices by records of MSPTI, not {records[what]}" for what in records | trace.records if trace.records[what] != records[what]]
    return problems if records else ["MSPTI has no records"]


def _by_thread(tasks: list[Task]) -> dict[tuple[int, int], list[Task]]:
    threads = defaultdict(list)
    for task in tasks:
        threads[task.pid, task.tid].append(task)
    return threads


def _check_launch(trace: Trace, slice: Slice, arrows: dict, launched: dict, result: Result) -> Task | None:
    """The task that was submitted during the launch's span on the host, from which one arrow must lead to the slice."""
    what = f"{slice.span.name} (launch {slice.launch} of {slice.place})"
    host = trace.hosts.get((slice.place[0], slice.launch))
    if host is None:
        result.wrong.append(f"{what}: no span on the host")
        return None
    begins = arrows.get((slice.span.pid, slice.span.tid, slice.span.begin_ns), [])
    if not any(begin[:2] == (host.pid, host.tid) and _within(begin[2], host) for begin in begins):
        result.wrong.append(f"{what}: no arrow from its launch: {begins}")
    tasks = [task for task in launched.get((host.pid, host.tid), []) if _within(task.launch_ns, host)]
    if len(tasks) != 1:
        result.wrong.append(f"{what}: {len(tasks)} tasks were submitted during its launch")
        return None
    return tasks[0]


def _within(time_ns: float, host) -> bool:
    return host.begin_ns - ROUNDED_NS <= time_ns <= host.end_ns + ROUNDED_NS


def _check_slice(slice: Slice, task: Task, result: Result) -> None:
    what = f"{slice.span.name} (launch {slice.launch} of {slice.place})"
    if (slice.place, slice.span.name) != (task.place, task.name):
        result.wrong.append(f"{what} is really {task.name} of {task.place}")
    kernels = [name for entry in slice.span.args.get("kernels", []) for name in _repeated(entry)]
    if kernels != _grouped(task.kernels):
        result.wrong.append(f"{what}: its graph has {list(task.kernels)}, not {kernels}")
    _check_times(what, slice, (task.begin_ns, task.end_ns), result)
    uncertainty = slice.span.args["uncertainty_us"] * 1e3
    if slice.span.begin_ns > task.own_begin_ns + uncertainty + ROUNDED_NS or slice.span.end_ns < task.own_end_ns - uncertainty - ROUNDED_NS:
        result.wrong.append(f"{what} does not hold its task")
    result.around_ns.append(slice.span.end_ns - slice.span.begin_ns - (task.own_end_ns - task.own_begin_ns))


def _check_times(what: str, slice: Slice, times_ns: tuple[int, int], result: Result) -> None:
    uncertainty = slice.span.args["uncertainty_us"] * 1e3
    errors = abs(slice.span.begin_ns - times_ns[0]), abs(slice.span.end_ns - times_ns[1])
    for end, error in zip(("starts", "ends"), errors):
        if error > uncertainty + ROUNDED_NS:
            result.wrong.append(f"{what} {end} {error / 1e3:.3f} µs off, with ± {uncertainty / 1e3:.3f} µs stated")
    result.start_errors_ns.append(errors[0])
    result.end_errors_ns.append(errors[1])
    result.uncertainties_ns.append(uncertainty)


def _repeated(entry: str) -> list[str]:
    """A graph's list of kernels says `name ×5` where there are several."""
    name, _, count = entry.partition(" ×")
    return [name] * int(count or 1)


def _grouped(kernels: Sequence[str]) -> list[str]:
    return [name for group in dict.fromkeys(kernels) for name in kernels if name == group]


def _check_order(place: tuple, pairs: list[tuple[Slice, Task]], result: Result) -> None:
    if len({task.launch_ns for _, task in pairs}) != len(pairs):
        result.wrong.append(f"{place}: two slices of one task")
    shown = [task for _, task in sorted(pairs, key=lambda pair: pair[0].span.begin_ns)]
    if [task.launch_ns for task in shown] != sorted(task.launch_ns for task in shown):
        result.wrong.append(f"{place}: the slices have another order than the tasks")
