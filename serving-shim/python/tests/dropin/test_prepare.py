"""A new run prepares its directory: existing fragments move to `previous/`, and nothing else is touched."""

import json
import os

import pytest

from sa_profile import configure_profiler, create_profile_config, get_profiler, merge_profile, profile_instant, recorder

from .conftest import events


def test_only_fragments_are_moved_and_none_is_overwritten(config):
    fragments = ("trace.1.jsonl", "trace.1.ring", "trace.2.s3.jsonl")
    for text in ("first", "second"):
        config.fragments_dir.mkdir(parents=True, exist_ok=True)
        for name in (*fragments, "keep.txt", "trace.json", "other.1.jsonl"):
            (config.fragments_dir / name).write_text(text)
        config.trace_file.write_text("kept")
        recorder._prepare_run(config)
    assert sorted(path.name for path in config.fragments_dir.iterdir()) == ["keep.txt", "other.1.jsonl", "trace.json"]
    assert config.trace_file.read_text() == "kept"
    aside = list((config.output / "previous" / "unknown").iterdir())
    assert sorted(path.read_text() for path in aside) == ["first"] * 3 + ["second"] * 3
    assert set(fragments) < {path.name for path in aside} and len([path for path in aside if path.suffix == ".ring"]) == 2


@pytest.fixture
def fragment(config):
    """Returns a fragment of an earlier run."""
    config.fragments_dir.mkdir(parents=True)
    fragment = config.fragments_dir / "trace.1.jsonl"
    fragment.write_text("{}\n")
    return fragment


@pytest.mark.parametrize("link", ["previous", "previous/unknown", "fragments/trace.1.ring"])
def test_a_link_is_not_followed(config, tmp_path, fragment, link):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = config.output / link
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(elsewhere)
    recorder._prepare_run(config)
    assert place.is_symlink() and fragment.exists() == link.startswith("previous") and list(elsewhere.iterdir()) == []


def test_a_folder_of_another_user_is_left_alone(config, fragment):
    (config.output / "previous").mkdir()
    try:
        os.chown(config.output / "previous", 12345, -1)
    except OSError as error:
        pytest.skip(f"SKIPPED a folder of another user: this one may not make one ({error})")
    recorder._prepare_run(config)
    assert fragment.exists()


def test_the_fragment_of_a_live_process_stays(config):
    profiler = configure_profiler(config)
    profile_instant("one")
    recorder._prepare_run(config)
    profile_instant("two")
    assert merge_profile() == 4
    assert profiler._fragment_file.exists()


def test_only_the_first_main_process_begins_a_run(tmp_path, monkeypatch):
    config = create_profile_config(enabled=True, output=tmp_path / "o")
    monkeypatch.setenv("SA_PROFILE_OUTPUT", str(config.output))
    config.fragments_dir.mkdir(parents=True)
    old = config.fragments_dir / "trace.1.jsonl"
    old.write_text('{"name":"old"}\n')
    monkeypatch.setenv("SA_PROFILE_MAIN_PID", str(os.getpid()))
    get_profiler().close()
    assert old.exists(), "who finds the variable set goes on with the run"
    monkeypatch.delenv("SA_PROFILE_MAIN_PID")
    recorder._profiler = None
    profiler = get_profiler()
    assert not old.exists()
    assert os.environ["SA_PROFILE_MAIN_PID"] == str(os.getpid())
    profile_instant("new")
    merge_profile()
    assert [event["name"] for event in events(config.trace_file) if event.get("ph") == "i"] == ["new"]
    assert json.loads(profiler._fragment_file.read_text().splitlines()[0])["args"]["main"] is True


def test_children_find_the_run_from_other_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("SA_PROFILE_OUTPUT", "relative.json")
    assert get_profiler()._fragment_file.parent == tmp_path / "relative.json.fragments"
    assert os.environ["SA_PROFILE_OUTPUT"] == str(tmp_path / "relative.json") and os.environ["SA_PROFILE_RUN"]


def test_a_configuration_does_not_change_the_users_variables(config, monkeypatch):
    monkeypatch.setenv("SA_PROFILE_OUTPUT", "elsewhere")
    configure_profiler(config)
    assert os.environ["SA_PROFILE_OUTPUT"] == "elsewhere" and "SA_PROFILE_DIR" not in os.environ
