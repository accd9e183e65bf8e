"""Spans, instants, durations and metadata of a recorder."""

import asyncio
import threading
import time

import pytest

from sa_profile import ProfileRecorder, create_profile_config, merge_fragments

from .conftest import events, lines, named, names


@pytest.fixture
def recorder(config):
    recorder = ProfileRecorder(config, process_name="test")
    yield recorder
    recorder.close()


def closed(recorder):
    recorder.close()
    return lines(recorder._fragment_file)


def test_a_span_has_its_names_and_times(recorder):
    before = time.perf_counter_ns() / 1000
    with recorder.span("step", cat="engine", args={"batch": 3}):
        time.sleep(0.002)
    (span,) = named(closed(recorder), "step")
    after = time.perf_counter_ns() / 1000
    assert (span["ph"], span["cat"], span["pid"], span["args"]) == ("X", "engine", recorder.pid, {"batch": 3})
    assert before <= span["ts"] and span["ts"] + span["dur"] <= after, "the clock is that of perf_counter"
    assert span["dur"] >= 2000


@pytest.mark.parametrize("args", [None, {}])
def test_events_without_args_have_the_member(recorder, args):
    def record():
        with recorder.span("span", args=args):
            recorder.instant("instant", args=args)
            recorder.duration("duration", dur_us=0, args=args)

    async def serve():
        record()

    record()
    asyncio.run(serve())
    assert [event["args"] for event in closed(recorder) if event["ph"] != "M"] == [{}] * 6
    merge_fragments(recorder.config.fragments_dir, recorder.config.trace_file)
    assert [event["args"] for event in events(recorder.config.trace_file) if event["ph"] != "M"] == [{}] * 6


def test_args_are_read_when_the_span_ends_and_an_exception_passes(recorder):
    args = {"kernel": "k"}
    with pytest.raises(KeyError), recorder.span("launch", args=args):
        args["device_wall_us"] = 12.5
        args["kernel"] = "other"
        raise KeyError("x")
    (span,) = named(closed(recorder), "launch")
    assert span["args"] == {"kernel": "other", "device_wall_us": 12.5}


def test_repeated_keys(recorder):
    """Encoded keys are cached by their object, at any position among the args and with any length, as long as the object exists."""
    odd = ['a"b', "a\\", "", "é", "x" * 29, "y" * 30, "z" * 31, "w" * 300, "cat", "level", "name"]
    many = [f"key-{number}" for number in range(600)]
    found = []
    for turn in range(3):
        for at in range(0, len(many), 30):
            found.append({key: turn for key in many[at : at + 30]})
        found.append({key: turn for key in odd})
        found.append({key: turn for key in reversed(odd)})
        found.append({f"made-{number}": turn for number in range(5)})
        found.append({"first": turn})
    for args in found:
        with recorder.span("keys", args=args):
            pass
        recorder.instant("keys", args=args)
    assert [event["args"] for event in closed(recorder) if event["name"] == "keys"] == [args for args in found for _ in range(2)]


def test_an_instant(recorder):
    recorder.instant("queued", cat="serving", args={"request_id": "cmpl-1", "cat": 1, "level": 2, "name": 3})
    recorder.instant("plain")
    instant, plain = [record for record in closed(recorder) if record["ph"] == "i"]
    assert (instant["s"], instant["cat"], instant["name"]) == ("t", "serving", "queued")
    assert instant["args"] == {"request_id": "cmpl-1", "cat": 1, "level": 2, "name": 3}
    assert plain["cat"] == "e2e"


def test_a_duration_is_a_whole_number_and_ends_now_or_begins_at_a_given_time(recorder):
    before = time.perf_counter_ns() / 1000
    recorder.duration("now", dur_us=5_000.7, args={"x": 1})
    after = time.perf_counter_ns() / 1000
    for dur_us in (7, 0, -3, -0.5):
        recorder.duration("then", dur_us=dur_us, ts_us=before - 1000.9)
    records = closed(recorder)
    (now,), then = named(records, "now"), named(records, "then")
    assert before - 5_000 <= now["ts"] <= after - 5_000 and (now["ph"], now["dur"], now["args"]) == ("X", 5_000, {"x": 1})
    assert [(one["ts"], one["dur"]) for one in then] == [(int(before - 1000.9), dur) for dur in (7, 0, 0, 0)]


def test_other_levels_are_left_out(tmp_path):
    config = create_profile_config(enabled=True, output=tmp_path / "o", levels="kernel")
    recorder = ProfileRecorder(config)
    assert (recorder.includes("kernel"), recorder.includes("e2e"), recorder.includes("any")) == (True, False, False)
    with recorder.span("no"), recorder.span("yes", level="kernel"):
        recorder.instant("no")
        recorder.duration("no", dur_us=1, level="verbose")
        recorder.instant("no", level="unknown")
    assert [record["name"] for record in closed(recorder) if record["ph"] != "M"] == ["yes"]


def test_metadata(recorder):
    def work():
        recorder.instant("in thread")
        recorder.metadata("thread_name", "worker-b", tid=threading.get_ident())

    thread = threading.Thread(target=work, name="worker-a")
    thread.start()
    thread.join()
    recorder.metadata("process_labels", "NPU 3")
    recorder.metadata("process_name", "told")
    recorder.metadata("thread_sort_index", 5, tid=12)
    records = closed(recorder)
    (label,), (index,), (instant,) = (named(records, name) for name in ("process_labels", "thread_sort_index", "in thread"))
    assert (label["ph"], label["args"]) == ("M", {"name": "NPU 3"}) and ("process_name", "told") in names(records)
    assert (index["tid"], index["args"]) == (12, {"name": 5})
    of_thread = [record["args"]["name"] for record in named(records, "thread_name") if record["tid"] == instant["tid"]]
    assert sorted(of_thread) == ["worker-a", "worker-b"]
