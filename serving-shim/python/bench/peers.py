"""Other ways to record a span in Python."""

import json
import os
import threading
import time

from subject import Case

PID = os.getpid()


def cases(name, directory):
    """Returns the cases of a recorder, and messages about skipped ones."""
    try:
        opens = {"json": json_lines, "viztracer": viztracer, "nvtx": nvtx}[name](directory)
    except ImportError as error:
        return [], [f"{name}: {error.name} is not installed (bench/requirements.txt)"]

    def span(count):
        for _ in range(count):
            with opens():
                pass

    return [Case({"json": "json_dumps_per_line", "viztracer": "viztracer_log_event", "nvtx": "nvtx_annotate"}[name], span)], []


class JsonSpan:
    """The simplest recorder: it writes a line of JSON for each span to a buffered file. A kill loses the buffered lines."""

    def __init__(self, file, lock, name, cat, **args):
        self.file = file
        self.lock = lock
        self.name = name
        self.cat = cat
        self.args = args

    def __enter__(self):
        self.start_ns = time.monotonic_ns()
        return self

    def __exit__(self, *_):
        dur_ns = time.monotonic_ns() - self.start_ns
        event = {"name": self.name, "cat": self.cat, "ph": "X", "ts": self.start_ns / 1000, "dur": dur_ns / 1000}
        line = json.dumps(event | {"pid": PID, "tid": threading.get_native_id(), "args": self.args})
        with self.lock:
            self.file.write(line + "\n")


def json_lines(directory):
    directory.mkdir(parents=True, exist_ok=True)
    file, lock = (directory / "trace.jsonl").open("w", encoding="utf-8"), threading.Lock()
    return lambda: JsonSpan(file, lock, "step", "bench", prefill=1, decode=7)


def viztracer(directory):
    from viztracer import VizTracer

    # Only events that the program logs, without the automatic ones. They stay in memory and are never saved here, which would cost another 2.7 us per event.
    tracer = VizTracer(output_file=str(directory / "trace.json"), verbose=0, max_stack_depth=0)
    tracer.start()
    return lambda: tracer.log_event("step")


def nvtx(_directory):
    from nvtx import annotate

    # No tool is attached, so this is the cost of the calls alone.
    return lambda: annotate("step")
