"""What the simulated NPU really did, by its own log (ascend-sys/sim/README.md)."""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

#: Kinds of tasks that are timed, and what a slice of them is called where the task has no name.
TIMED = {"kernel": "", "memcpy": "", "hccl": "", "replay": "aclmdlRIExecuteAsync"}


@dataclass(frozen=True)
class Task:
    """A task of a stream with the event before and the one after it, which is what can be measured. Times are of CLOCK_MONOTONIC in ns."""

    pid: int
    tid: int
    device: int
    stream: int
    name: str
    launch_ns: int
    begin_ns: int
    end_ns: int
    #: The names of the kernels and collectives of a replay, in their order.
    kernels: tuple[str, ...] = ()

    @property
    def place(self) -> tuple[int, int, int]:
        return self.pid, self.device, self.stream


def read(folder: Path) -> list[Task]:
    """The tasks of all processes of a run, each stream's in its order. The file of a process is called truth.PID."""
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
    """Where no event stands beside a task, because it was not timed, its own times."""
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
