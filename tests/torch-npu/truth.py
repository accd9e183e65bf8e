"""The log of the simulated NPU (ascend-sys/sim/README.md)."""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

#: Kinds of timed tasks, with the name of the slice for a task without a name.
TIMED = {"kernel": "", "memcpy": "", "hccl": "", "replay": "aclmdlRIExecuteAsync"}


@dataclass(frozen=True)
class Task:
    """A task of a stream with the events before and after it, which can be measured. Times are CLOCK_MONOTONIC in ns."""

    pid: int
    tid: int
    device: int
    stream: int
    name: str
    launch_ns: int
    begin_ns: int
    end_ns: int
    #: Names of the kernels and collectives of a replay, in order.
    kernels: tuple[str, ...] = ()

    @property
    def place(self) -> tuple[int, int, int]:
        return self.pid, self.device, self.stream


def read(folder: Path) -> list[Task]:
    """Returns the tasks of all processes of a run, ordered within each stream. The file of a process is called truth.PID."""
    tasks = []
    for path in sorted(folder.glob("truth.*")):
        streams = defaultdict(list)
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            streams[entry["device"], entry["stream"]].append(entry)
        for entries in streams.values():
            tasks += _of_stream(int(path.suffix[1:]), entries)
    return tasks


def records(folder: Path) -> Counter[tuple[tuple[int, int, int], str, int]]:
    """Counts the records that MSPTI has, by place, name and number. A kernel of a replay is in the graph's own stream."""
    found = Counter()
    for path in folder.glob("truth.*"):
        entries = map(json.loads, path.read_text().splitlines())
        for entry in (entry for entry in entries if "correlation" in entry):
            place = int(path.suffix[1:]), entry["device"], entry.get("graph_stream", entry["stream"])
            found[place, entry["name"], entry["correlation"]] += 1
    return found


def _of_stream(pid: int, entries: list[dict]) -> list[Task]:
    entries.sort(key=lambda entry: (entry["start_ns"], entry["seq"]))
    kernels = defaultdict(list)
    for entry in entries:
        if "graph" in entry and entry["kind"] in ("kernel", "hccl"):
            kernels[entry["seq"]].append(entry["name"])
    own = [entry for entry in entries if "graph" not in entry or entry["kind"] == "replay"]
    timed = [(before, entry, after) for before, entry, after in zip([{}, *own], own, [*own[1:], {}]) if entry["kind"] in TIMED]
    return [_task(pid, entry, before, after, kernels[entry["seq"]]) for before, entry, after in timed]


def _task(pid: int, entry: dict, before: dict, after: dict, kernels: list[str]) -> Task:
    """Returns the task's own times if there is no event next to it, because it was not timed."""
    return Task(
        pid=pid,
        tid=entry["tid"],
        device=entry["device"],
        stream=entry["stream"],
        name=entry["name"] or TIMED[entry["kind"]],
        launch_ns=entry["launch_ns"],
        begin_ns=before["end_ns"] if before.get("kind") == "event_record" else entry["start_ns"],
        end_ns=after["start_ns"] if after.get("kind") == "event_record" else entry["end_ns"],
        kernels=tuple(kernels) if entry["kind"] == "replay" else (),
    )
