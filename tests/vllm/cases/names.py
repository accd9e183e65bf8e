"""Which of the documented spans, instants and counters the trace of a real server has: a column of the table in docs/vllm.md."""

import importlib.metadata
import json

import mixture
from documented import ARGS, names
from server import Server
from trace import Trace, check_import

COLUMN = "names.json"  # in the folder of what is kept
# On the CPU, older versions leave the cache out, and their grammars want logits of 32 bits.
ALIKE = ["--enable-prefix-caching", "--dtype", "float32"]
SMALL_CACHE = 1280  # tokens: so few that long requests put each other off
DRAFTS = ["--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 3}']
DRAFTED = {"`speculation`", "`accepted_by_position`", "`scheduler.update_from_output`: `drafted`", "`scheduler.update_from_output`: `accepted`"}


def run(machine, report):
    """A server as it comes but for its small cache, and one that speculates."""
    counts = counted(record(machine, report, "names", small_cache(machine.options.block_size)))
    try:
        drafted = counted(record(machine, report, "drafts", DRAFTS))
    except SystemExit as error:  # a CPU build may have no speculation
        print("SKIPPED drafts:", error)
        drafted = {}
    counts.update({row: drafted.get(row) for row in counts if row[1] in DRAFTED})
    for row, count in counts.items():
        report.result("names", "not tried" if count is None else count, *row)
    report.check("names_request", counts["APIServer", "`request`"] > 0)
    column = dict(version=importlib.metadata.version("vllm").partition("+")[0], rows=[[*row, count] for row, count in counts.items()])
    (machine.folder / COLUMN).write_text(json.dumps(column))


def small_cache(block):
    """Arguments of a server that cannot hold long requests at once."""
    return ["--block-size", str(block), "--num-gpu-blocks-override", str(SMALL_CACHE // block)]


def record(machine, report, name, arguments):
    """The trace of one server."""
    folder = machine.folder / name
    with Server(machine, folder, arguments=[*ALIKE, *arguments], SA_PROFILE_LEVEL="verbose") as server:
        statuses = mixture.send(server.port, machine.options.tokens)
        report.result(f"{name}_statuses", " ".join(f"{kind} {status}" for kind, status in statuses.items()))
        complaints = [line for line in server.log.read_text().splitlines() if "sa_profile: " in line]
    for line in complaints:
        report.result(f"{name}_said", line)
    path, merged = machine.merge(folder)
    report.check(f"{name}_merge", merged.returncode == 0, merged.stderr.strip().splitlines()[0])
    check_import(machine, report, name, path)
    return Trace(path)


def counted(trace):
    """(kind of process, name or arg) → how many events have it."""
    found = {}
    for kind, name in names():
        events = [event for event in trace.by_name[name] if event["ph"] not in "Mstf" and is_of(trace, event, kind)]
        found[kind, f"`{name}`"] = len(events)
        for arg in ARGS.get((kind, name), ()):
            found[kind, f"`{name}`: `{arg}`"] = sum(bool(event.get("args", {}).get(arg)) for event in events)
    return found


def is_of(trace, event, kind):
    """Whether the event's process is of this kind. A worker may live in its engine's process."""
    serves = "APIServer" in trace.processes.get(event["pid"], "")
    return kind not in ("APIServer", "EngineCore", "Worker") or serves == (kind == "APIServer")
