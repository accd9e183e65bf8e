"""Recorders, and the process's own recorder: their lifecycle, their names, their files."""

import os

import pytest

from sa_profile import ProfileRecorder, configure_profiler, create_profile_config, get_profiler, is_enabled
from sa_profile import merge_profile, profile_duration, profile_instant, profile_span, start_profile, stop_profile

from .conftest import events, lines, names


def test_close_leaves_plain_lines_and_nothing_is_added(config):
    profiler = ProfileRecorder(config, process_name="api")
    assert (profiler.enabled, profiler.active, profiler.pid, profiler.process_name) == (True, True, os.getpid(), "api")
    assert profiler.config is config
    with profiler.span("one"):
        pass
    across = profiler.span("across")
    across.__enter__()
    profiler.close()
    across.__exit__(None, None, None)
    with profiler.span("late"):
        profiler.instant("late")
    profiler.metadata("process_name", "late")
    profiler.close()
    assert (profiler.enabled, profiler.active, profiler.includes("e2e")) == (True, False, False)
    assert profiler._fragment_file.match("trace.*.jsonl")
    assert list(config.fragments_dir.iterdir()) == [profiler._fragment_file]
    assert names(lines(profiler._fragment_file))[:3] == [("process_name", "api"), ("thread_name", "MainThread"), "one"]
    assert "late" not in profiler._fragment_file.read_text()


def test_recorders_for_two_directories(config, tmp_path):
    first = ProfileRecorder(config, process_name="first")
    first.instant("one")
    other = create_profile_config(enabled=True, output=tmp_path / "other.json")
    second = ProfileRecorder(other, process_name="second")
    assert (first.active, second.active) == (False, True)
    first.instant("lost")
    second.instant("two")
    second.close()
    first.close()
    assert names(lines(first._fragment_file)) == [("process_name", "first"), ("thread_name", "MainThread"), "one"]
    assert names(lines(second._fragment_file)) == [("process_name", "second"), ("thread_name", "MainThread"), "two"]
    assert second._fragment_file.parent == other.fragments_dir


def test_two_recorders_for_one_directory_share_a_recording(config):
    first, second = ProfileRecorder(config), ProfileRecorder(config)
    assert first.active and second.active and first._fragment_file == second._fragment_file
    first.instant("one")
    second.instant("two")
    second.close()
    assert not first.active
    assert [line["name"] for line in lines(first._fragment_file) if line["ph"] == "i"] == ["one", "two"]


def test_start_and_stop(config):
    profiler = ProfileRecorder(config, process_name="p", initially_active=False)
    assert (profiler.active, profiler.stop()) == (False, False)
    assert not config.output.exists()
    profiler.instant("before")
    assert (profiler.start(), profiler.start(), profiler.active) == (True, False, True)
    profiler.instant("during")
    assert (profiler.stop(), profiler.stop(), profiler.close(), profiler.active) == (True, False, False, False)
    profiler.instant("after")
    assert names(lines(profiler._fragment_file))[-1] == "during"
    assert b"before" not in profiler._fragment_file.read_bytes()


def test_the_recorder_of_the_process(config, monkeypatch):
    monkeypatch.setenv("SA_PROFILE_OUTPUT", str(config.output))
    profiler = get_profiler(process_name="initial")
    assert get_profiler() is profiler and is_enabled() and is_enabled("kernel") and not is_enabled("verbose")
    with profile_span("span", cat="c", level="kernel", args={"a": 1}):
        profile_instant("instant", cat="c", level="e2e", args={})
    profile_duration("duration", dur_us=3, cat="c", level="e2e", args=None, ts_us=None)
    assert get_profiler(process_name="initial") is profiler
    assert get_profiler(process_name="renamed") is profiler
    assert profiler.process_name == "renamed"
    profiler.close()
    found = names(lines(profiler._fragment_file))
    assert [name for name in found if name[0] == "process_name"] == [("process_name", "initial"), ("process_name", "renamed")]
    assert sorted(name for name in found if isinstance(name, str)) == ["duration", "instant", "span"]


def test_without_variables_nothing_happens(tmp_path):
    assert not is_enabled() and not is_enabled("e2e")
    with profile_span("x"):
        profile_instant("x")
        profile_duration("x", dur_us=1)
    assert not get_profiler().enabled
    assert (start_profile(), stop_profile(), merge_profile()) == (False, False, 0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("call", "answer"), [(start_profile, True), (stop_profile, False), (merge_profile, 0)])
def test_the_first_call_in_a_process_without_a_recording(config, monkeypatch, call, answer):
    monkeypatch.setenv("SA_PROFILE_OUTPUT", str(config.output))
    assert call() == answer
    assert get_profiler().active == bool(list(config.output.rglob("trace.*.*"))) == (call is start_profile)


@pytest.mark.parametrize(("call", "answer"), [("stop_profile", True), ("merge_profile", 3)])
def test_the_first_call_ends_a_recording_of_the_package(program, call, answer):
    program(
        f"""
        import sa_profile
        from sa_profile import get_profiler, merge_profile, {call}

        sa_profile.instant("by the package's own")
        assert {call}() == {answer}
        assert not get_profiler().active
        assert merge_profile() == 3
        """,
        SA_PROFILE_OUTPUT="out",
    )


def test_configure_replaces_the_recorder(config, tmp_path):
    first = configure_profiler(config, process_name="first")
    profile_instant("one")
    other = create_profile_config(enabled=True, output=tmp_path / "other", levels="e2e")
    second = configure_profiler(other, process_name="second", initially_active=False)
    assert (first.active, second.active, get_profiler()) == (False, False, second)
    assert is_enabled(), "asked for, though stopped"
    assert names(lines(first._fragment_file))[-1] == "one"
    profile_instant("nowhere")
    assert start_profile() and not start_profile()
    profile_instant("two")
    assert stop_profile() and not stop_profile()
    assert merge_profile() == 3
    disabled = configure_profiler(create_profile_config(enabled=False, output=tmp_path / "third"))
    assert (disabled.enabled, is_enabled(), start_profile()) == (False, False, False)
    assert not (tmp_path / "third").exists()


@pytest.mark.parametrize("output", ["out", "x.json"])
def test_a_new_run_keeps_earlier_ones(output, tmp_path):
    config = create_profile_config(enabled=True, output=tmp_path / output)
    configure_profiler(config, process_name="server", initially_active=False)
    for number in range(3):
        assert start_profile()
        assert not config.trace_file.exists(), "that of the run before is gone"
        profile_instant(f"run {number}")
        assert stop_profile()
        assert merge_profile() == 3
        assert [event["name"] for event in events(config.trace_file) if event["ph"] == "i"] == [f"run {number}"]
    assert len(list(config.fragments_dir.glob("trace.*.jsonl"))) == 1
    kept = list((tmp_path / output).rglob("previous/*/trace.*.jsonl")) + list(
        config.fragments_dir.glob("previous/*/trace.*.jsonl")
    )
    assert len(set(kept)) == 2
    texts = [path.read_text() for path in set(kept)]
    assert all(any(f"run {number}" in text for text in texts) for number in range(2))


def test_an_impossible_directory_only_costs_the_recording(tmp_path, capfd):
    (tmp_path / "file").write_text("in the way")
    profiler = configure_profiler(create_profile_config(enabled=True, output=tmp_path / "file" / "out"))
    with profile_span("x"):
        profile_instant("x")
    assert not profiler.active
    assert merge_profile() == 0
    message = capfd.readouterr().err
    assert "recording is off" in message and "file" in message


def test_threads_that_begin_at_once_share_one_run(program, tmp_path):
    program(
        """
        import threading
        from sa_profile import get_profiler, merge_profile, profile_instant

        barrier, profilers = threading.Barrier(8), []
        def work():
            barrier.wait()
            profile_instant("event")
            profilers.append(get_profiler())
        threads = [threading.Thread(target=work) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert len(set(map(id, profilers))) == 1
        assert merge_profile() == 1 + 8 + 8
        """,
        SA_PROFILE_OUTPUT="out",
    )
    assert not (tmp_path / "out" / "previous").exists()
