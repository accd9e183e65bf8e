"""Compares the merge with the simplest possible one, and checks that other threads run meanwhile."""

import contextlib
import json
import threading
import time

import pytest

from sa_profile import configure_profiler, merge_fragments, merge_profile, profile_instant, profile_span

from .conftest import events


def naive(folder):
    """Returns every line that is a JSON object, in the order of the file names."""
    objects = []
    for path in sorted(folder.glob("trace.*.jsonl")):
        for line in path.read_bytes().split(b"\n"):
            with contextlib.suppress(ValueError):
                objects.append(json.loads(line.decode()))
    return [one for one in objects if isinstance(one, dict)]


def check(folder, trace_file):
    before = {path: path.read_bytes() for path in folder.iterdir()}
    count = merge_fragments(folder, trace_file)
    found = events(trace_file)
    assert found == naive(folder)
    assert count == len(found)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before, "the fragments stay"
    assert [path.name for path in trace_file.parent.glob("*.tmp")] == []


ODD = [
    b'{"name":"ok"}',
    b'  {"ph":"X","name":"no ts","pid":1}\t',
    b'{"ph":"i","ts":-1.5,"pid":"text","tid":null,"args":{"a":[1,{"b":"\\ud83d\\ude00"}]}}',
    b'{"ph":"M","name":"process_name","args":{"name":"\\u00e9 \xc3\xa9"}}',
    b'{"a":1,"a":2}',
    b"[]",
    b"",
    b'{"name":',
    b'{"name":"x"} {"name":"y"}',
    b'{"bad utf-8":"\xff"}',
]


@pytest.mark.parametrize("last", [b"", b"\n", b'\n{"name":"torn'])
def test_fragments_are_merged_in_the_order_of_their_names(tmp_path, last):
    folder = tmp_path / "fragments"
    folder.mkdir()
    for number, name in enumerate(["1", "10", "9", "99.ab", "7.s1", "7", "x"]):
        (folder / f"trace.{name}.jsonl").write_bytes(b"\n".join([b'{"name":%d}' % number, *ODD[number:]]) + last)
    (folder / "other.jsonl").write_text('{"name":"other"}\n')
    check(folder, tmp_path / "out" / "trace.json")


@pytest.mark.parametrize("content", [None, "", "nonsense\n"])
def test_nothing_to_merge_is_an_empty_trace(content, tmp_path):
    if content is not None:
        (tmp_path / "trace.1.jsonl").write_text(content)
    (tmp_path / "out.json").write_text("old")
    assert merge_fragments(tmp_path if content is not None else tmp_path / "none", tmp_path / "out.json") == 0
    assert events(tmp_path / "out.json") == []


def test_a_trace_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "trace.1.jsonl").write_text('{"name":"ok"}\n')
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(OSError, match="folder.json"):
        merge_fragments(tmp_path, tmp_path / "folder.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.json", "trace.1.jsonl"]


def test_the_merge_ends_the_recording_of_this_process(config):
    profiler = configure_profiler(config, process_name="p")
    with profile_span("one"):
        profile_instant("two")
    assert merge_profile() == 4
    assert not profiler.active
    profile_instant("late")
    assert merge_profile() == 4, "and can be repeated"


def test_other_threads_run_during_a_large_merge(tmp_path):
    line = json.dumps({"name": "step", "cat": "c", "ph": "X", "ts": 1, "dur": 2, "pid": 3, "tid": 4, "args": {"x": "y" * 100}})
    text = (line + "\n") * 100_000
    for number in range(8):
        (tmp_path / f"trace.{number}.jsonl").write_text(text)
    merge = threading.Thread(target=merge_fragments, args=(tmp_path, tmp_path / "trace.json"))
    merge.start()
    ticks = [time.perf_counter()]
    while merge.is_alive():
        time.sleep(0.001)
        ticks.append(time.perf_counter())
    assert len(events(tmp_path / "trace.json")) == 800_000
    took, gap = ticks[-1] - ticks[0], max(end - start for start, end in zip(ticks, ticks[1:]))
    assert took > 0.05, "too short to tell"
    assert gap < took / 2, f"stood still for {gap:.3f} of {took:.3f} s"
