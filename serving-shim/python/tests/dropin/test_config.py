"""The configuration: variables, levels, paths."""

import dataclasses
import pickle
from pathlib import Path

import pytest

from sa_profile import ProfileConfig, create_profile_config, get_profiler, is_enabled, load_profile_config, profile_span
from sa_profile.env import load_profile_config as of_submodule


@pytest.mark.parametrize("env", [{}, {"SA_PROFILE_RUN": "x", "SA_PROFILE_MAIN_PID": "7", "SA_PROFILE_DIR": ""}])
def test_profiling_is_off_without_variables(env):
    config = load_profile_config(env)
    assert (config.enabled, config.levels) == (False, {"e2e", "kernel"})
    assert of_submodule is load_profile_config


@pytest.mark.parametrize(
    "env", [{"SA_PROFILE_OUTPUT": "x"}, {"SA_PROFILE_OUTPUT": ""}, {"SA_PROFILE_LEVEL": "e2e"}, {"SA_PROFILE_LEVEL": ""}]
)
def test_presence_enables(env, monkeypatch):
    assert load_profile_config(env).enabled
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert load_profile_config().enabled
    assert is_enabled(), "to ask makes no profiler"
    assert get_profiler().enabled


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("", {"e2e", "kernel"}),
        (" , ", {"e2e", "kernel"}),
        ("e2e", {"e2e"}),
        (" Kernel ,E2E", {"e2e", "kernel"}),
        ("VERBOSE", {"e2e", "kernel", "verbose"}),
    ],
)
def test_levels(text, levels):
    config = load_profile_config({"SA_PROFILE_LEVEL": text})
    assert config.levels == levels
    assert isinstance(config.levels, frozenset)
    for level in ("e2e", "kernel", "verbose"):
        assert config.includes(level) == (level in levels or "verbose" in levels)


def test_an_unknown_level_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="'bogus'.*e2e, kernel, verbose"):
        load_profile_config({"SA_PROFILE_LEVEL": "e2e,bogus"})
    with pytest.raises(ValueError):
        create_profile_config(enabled=True, output="x", levels=["nothing"])
    monkeypatch.setenv("SA_PROFILE_LEVEL", "bogus")
    with pytest.raises(ValueError), profile_span("x"):
        pass


@pytest.mark.parametrize(
    ("env", "output", "trace_file", "fragments_dir"),
    [
        ({"SA_PROFILE_OUTPUT": "some/where"}, "some/where", "some/where/trace.json", "some/where/fragments"),
        ({"SA_PROFILE_OUTPUT": "some/x.json"}, "some/x.json", "some/x.json", "some/x.json.fragments"),
        ({"SA_PROFILE_LEVEL": "e2e"}, "profile_out", "profile_out/trace.json", "profile_out/fragments"),
        ({"SA_PROFILE_OUTPUT": "~/p"}, "/home/somebody/p", "/home/somebody/p/trace.json", "/home/somebody/p/fragments"),
        ({"SA_PROFILE_OUTPUT": "~nobody-has-this-name"}, "~nobody-has-this-name", "~nobody-has-this-name/trace.json", "~nobody-has-this-name/fragments"),
        ({"SA_PROFILE_DIR": "a.json", "SA_PROFILE_OUTPUT": "b"}, "a.json", "a.json/trace.json", "a.json/fragments"),
    ],
)
def test_paths_stay_as_they_were_given(monkeypatch, env, output, trace_file, fragments_dir):
    monkeypatch.setenv("HOME", "/home/somebody")
    config = load_profile_config(env)
    assert config.enabled and [config.output, config.trace_file, config.fragments_dir] == [Path(output), Path(trace_file), Path(fragments_dir)]


def test_a_configuration_is_created_from_values():
    for levels in (None, "", "e2e,kernel", ["kernel", "e2e"], frozenset({"e2e", "kernel"})):
        config = create_profile_config(enabled=True, output=Path("o"), levels=levels)
        assert config == ProfileConfig(
            True, Path("o"), Path("o/trace.json"), Path("o/fragments"), frozenset({"e2e", "kernel"})
        )
        assert pickle.loads(pickle.dumps(config)) == config
        with pytest.raises(dataclasses.FrozenInstanceError):
            config.enabled = False
    assert not create_profile_config(enabled=False, output=None, levels=None).enabled
