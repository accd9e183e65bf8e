"""Other ways to record a span in Python."""

import json
import os
import threading
import time

from subject import Case


def cases(name, directory):
    """The cases of a recorder, and what has to be skipped."""
    try:
        opens = {"json": json_lines, "viztracer": viztracer, "nvtx": nvtx}[name](directory)
    except ImportError as error:
        return [], [f"{name}: {error.name} is not installed (bench/requirements.txt)"]

    def span(count):
        for _ in range(count):
            with opens():
                pass

    return [Case({"json": "json_dumps_per_line", "viztracer": "viztracer_log_event", "nvtx": "nvtx_annotate"}[name], span)], []


class JsonLines:
    """The recorder that everybody writes first: a line of JSON for each span into a buffered file. A kill loses what is buffered."""

    def __init__(self, path):
        self.file = path.open("w", encoding="utf-8")
        self.lock = threading.Lock()
        self.pid = os.getpid()

    def span(self, name, cat, **args):
        return JsonSpan(self, name, cat, args)

    def write(self, event):
        line = json.dumps(event)
        with self.lock:
            self.file.write(line + "\n")


class JsonSpan:
    def __init__(self, recorder, name, cat, args):
        self.recorder = recorder
        self.name = name
        self.cat = cat
        self.args = args

    def __enter__(self):
        self.start_ns = time.monotonic_ns()
        return self

    def __exit__(self, *_):
        dur_ns = time.monotonic_ns() - self.start_ns
        self.recorder.write(
            {
                "name": self.name,
                "cat": self.cat,
                "ph": "X",
                "ts": self.start_ns / 1000,
                "dur": dur_ns / 1000,
                "pid": self.recorder.pid,
                "tid": threading.get_native_id(),
                "args": self.args,
            }
        )


def json_lines(directory):
    directory.mkdir(parents=True, exist_ok=True)
    recorder = JsonLines(directory / "trace.jsonl")
    return lambda: recorder.span("step", "bench", prefill=1, decode=7)


def viztracer(directory):
    from viztracer import VizTracer

    # Events that the program logs, without the automatic ones. Kept in memory, and never saved here: that costs it another 2.7 us an event.
    tracer = VizTracer(output_file=str(directory / "trace.json"), verbose=0, max_stack_depth=0)
    tracer.start()
    return lambda: tracer.log_event("step")


def nvtx(_directory):
    from nvtx import annotate

    # No tool is attached: this is what the calls alone cost.
    return lambda: annotate("step")
