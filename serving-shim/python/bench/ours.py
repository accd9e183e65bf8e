"""The cases of sa_profile, while recording is on or off."""

from types import SimpleNamespace

import sa_profile
from sa_profile._hooks import named_functions
from sa_profile._hooks.attribute_paths import PathSpans
from subject import Case


def cases(state):
    """Returns every case, and messages about skipped ones. The names end with the state."""
    if sa_profile.is_enabled() != (state == "on"):
        raise SystemExit(f"recording is not {state}")
    found = [*events(), tracked(), *hooked(), *drop_in()]
    for case in found:
        case.name = f"{case.name}_{state}"
    return found, []


def events():
    span, instant = sa_profile.span, sa_profile.instant
    step = span("step", cat="bench")

    def span_reused(count):
        for _ in range(count):
            with step:
                pass

    def span_2_args(count):
        for _ in range(count):
            with span("step", cat="bench", prefill=1, decode=7):
                pass

    def instant_plain(count):
        for _ in range(count):
            instant("queued")

    def instant_2_args(count):
        for _ in range(count):
            instant("queued", request_id="cmpl-1", prompt_tokens=12)

    return [
        Case("span_reused", span_reused),
        Case("span_2_args", span_2_args),
        Case("instant", instant_plain),
        Case("instant_2_args", instant_2_args),
    ]


def tracked():
    """Returns the case that measures what ``@track`` adds to a call."""

    def function():
        pass

    def calls(function):
        def run(count):
            for _ in range(count):
                function()

        return run

    return Case("track_function", calls(sa_profile.track(function)), calls(function))


def hooked():
    """Returns the cases that measure what a hook from a file adds to a call: without args, and with one arg."""
    request = SimpleNamespace(id="cmpl-1")

    def function(request):
        pass

    def calls(function):
        def run(count):
            for _ in range(count):
                function(request)

        return run

    def hook(*paths):
        return named_functions._wrap(function, PathSpans("function", "bench", "e2e", paths, function))

    path = ("request", "request.id", "request", [("attribute", "id")], False)
    return [Case("hook", calls(hook()), calls(function)), Case("hook_1_arg", calls(hook(path)), calls(function))]


def drop_in():
    """Returns the cases for the functions of the pypto-serving profiler."""
    profile_span, profile_instant = sa_profile.profile_span, sa_profile.profile_instant

    def span_plain(count):
        for _ in range(count):
            with profile_span("step", cat="bench"):
                pass

    def span_3_args(count):
        for _ in range(count):
            with profile_span("step", cat="bench", args={"batch": 4, "prefill": 1, "decode": 7}):
                pass

    def instant_2_args(count):
        for _ in range(count):
            profile_instant("queued", cat="bench", args={"request_id": "cmpl-1", "prompt_tokens": 12})

    return [
        Case("drop_in_span", span_plain),
        Case("drop_in_span_3_args", span_3_args),
        Case("drop_in_instant_2_args", instant_2_args),
    ]
