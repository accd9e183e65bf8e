"""The functions for call sites: which recorder they use, their parameters, and the names by which they are found."""

import inspect

import pytest

from sa_profile import ProfileRecorder, configure_profiler, create_profile_config, get_profiler, merge_profile
from sa_profile import profile_instant, profile_span, recorder, start_profile, stop_profile

from .conftest import events


def recorded(config):
    """Returns the names of the recorded events, in order."""
    merge_profile()
    return [event["name"] for event in events(config.trace_file) if event["ph"] in "Xi"]


def record(name, **keywords):
    """Calls each of the two functions twice."""
    for _ in range(2):
        with profile_span(name, **keywords):
            pass
        profile_instant(name, **keywords)


def test_call_sites_use_the_recorder_of_the_process(config, tmp_path):
    record("nowhere")
    profiler = configure_profiler(config)
    record("one")
    stop_profile()
    record("stopped")
    assert profiler.start()
    record("two")
    record("verbose", level="verbose")
    profiler.enabled = False
    record("disabled")
    profiler.enabled = True
    record("three")
    assert recorded(config) == ["two"] * 4 + ["three"] * 4
    assert start_profile()
    record("four")
    stop_profile()
    recorder._profiler = ProfileRecorder(create_profile_config(enabled=True, output=tmp_path / "other"))
    record("elsewhere")
    assert recorded(recorder._profiler.config) == ["elsewhere"] * 4
    del recorder._profiler
    with pytest.raises(NameError):
        profile_span("nobody's")
    recorder._profiler = None
    record("nowhere")
    assert not get_profiler().enabled


@pytest.mark.parametrize("is_on", [True, False])
def test_parameters(config, is_on):
    if is_on:
        configure_profiler(config)
    for function in (profile_span, profile_instant):
        name, *others = inspect.signature(function).parameters.values()
        assert (name.name, name.kind, name.default) == ("name", name.POSITIONAL_OR_KEYWORD, name.empty)
        assert all(other.kind == other.KEYWORD_ONLY for other in others) and function.__doc__
        assert {other.name: other.default for other in others} == {"cat": "e2e", "level": "e2e", "args": None}
        assert (function.__module__, function.__qualname__) == ("sa_profile.recorder", function.__name__)
    record(7, cat=8, args=(("a", 1),))
    record("text", cat=None, args={"b": 2})
    record("dict", args=type("Dict", (dict,), {})(c=3))
    if is_on:
        merge_profile()
        found = [(e["name"], e["cat"], e["args"]) for e in events(config.trace_file) if e["ph"] in "Xi"]
        assert found == [("7", "8", {"a": 1})] * 4 + [("text", "None", {"b": 2})] * 4 + [("dict", "e2e", {"c": 3})] * 4
