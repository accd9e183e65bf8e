"""The wrapping itself, and waiting for modules."""

import subprocess
import sys

import pytest

from sa_profile.vllm import chain, control, plugin


class Thing:
    def work(self, one, two=2):
        return one, two

    @staticmethod
    def fixed(one):
        return one

    async def later(self):
        return "done"

    async def items(self):
        yield 1
        yield 2


class Slotted:
    __slots__ = ()

    def work(self):
        return 1


@pytest.fixture
def told(monkeypatch):
    said = []
    monkeypatch.setattr(chain, "tell", said.append)
    return said


def test_results_arguments_and_names_stay(told):
    cls = type("Copy", (Thing,), {})
    seen = []
    assert chain.chain(cls, "work", lambda *args, **kwargs: lambda result, error: seen.append((args[1:], kwargs, result)))
    assert cls().work(1, two=3) == (1, 3)
    assert seen == [((1,), {"two": 3}, (1, 3))]
    assert cls.work.__name__ == "work" and not told


def test_a_static_method_stays_static(told):
    cls = type("Copy", (Thing,), {})
    chain.chain(cls, "fixed", lambda one: None)
    assert cls.fixed(5) == 5 and cls().fixed(6) == 6


def test_wrapping_twice_is_wrapping_once(told):
    cls = type("Copy", (Thing,), {})
    assert chain.chain(cls, "work", lambda *_: None)
    assert not chain.chain(cls, "work", lambda *_: None)
    one = cls()
    assert not chain.chain(one, "work", lambda *_: None), "its class is wrapped"


def test_observers_that_fail_are_told_and_change_nothing(told):
    def before(*_args):
        raise RuntimeError("before")

    def after(*_args):
        def leave(_result, _error):
            raise RuntimeError("after")

        return leave

    for observe in (before, after):
        cls = type("Copy", (Thing,), {})
        chain.chain(cls, "work", observe)
        assert cls().work(1) == (1, 2)
    assert len(told) == 2 and "before" in told[0] and "after" in told[1]


def test_exceptions_of_the_host_pass_and_are_seen(told):
    class Failing:
        def work(self):
            raise SystemExit(3)

    seen = []
    chain.chain(Failing, "work", lambda _self: lambda result, error: seen.append(type(error)))
    with pytest.raises(SystemExit):
        Failing().work()
    assert seen == [SystemExit]


def test_signals_that_arrive_in_an_observer_pass(told):
    def interrupted(*_args):
        raise KeyboardInterrupt

    cls = type("Copy", (Thing,), {})
    chain.chain(cls, "work", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cls().work(1)


def test_missing_and_unwritable_attributes_are_told(told):
    assert not chain.chain(Thing, "absent", lambda *_: None)
    assert not chain.chain(Slotted(), "work", lambda: None)
    assert told == [
        "this vLLM has no Thing.absent: its spans are missing",
        told[1],
    ]
    assert "Slotted.work cannot be wrapped" in told[1]


def test_each_thing_is_told_once(capfd):
    chain._told.clear()
    chain.tell("a")
    chain.tell("a")
    assert capfd.readouterr().err == "sa_profile: vLLM plugin: a\n"


def test_coroutines_and_generators_end_where_they_end(told):
    import asyncio

    seen = []

    def observe(name, delayed=False):
        leave = lambda result, error: seen.append((name, result, type(error).__name__))
        return lambda *_args: (lambda: leave) if delayed else leave

    cls = type("Copy", (Thing,), {})
    chain.chain(cls, "later", observe("later"))
    chain.chain(cls, "items", observe("items", delayed=True))

    async def main():
        assert await cls().later() == "done"
        assert [one async for one in cls().items()] == [1, 2]
        generator = cls().items()
        await anext(generator)
        await generator.aclose()
        generator = cls().items()
        await anext(generator)
        with pytest.raises(LookupError):
            await generator.athrow(LookupError("thrown in"))

    asyncio.run(main())
    assert seen == [
        ("later", "done", "NoneType"), ("items", None, "NoneType"), ("items", None, "GeneratorExit"),
        ("items", None, "LookupError"),
    ]


def test_configured_by_any_of_the_variables():
    assert not plugin.configured({"SA_PROFILE_MAX_MB": "5", "PATH": "/"})
    for name in plugin.SWITCHES:
        assert plugin.configured({name: ""})


def imports_later():
    from sa_profile.vllm.imports import when_imported

    seen = []
    when_imported("vllm.v1.utils", lambda module: seen.append(("after", hasattr(module, "record_function_or_nullcontext"))))
    when_imported("vllm.absent", lambda module: seen.append("absent"))
    when_imported("json", lambda module: seen.append(module.__name__))
    import vllm.v1.utils

    try:
        import vllm.absent
    except ImportError:
        seen.append("no such module")
    import importlib.util

    print(seen, type(vllm.v1.utils.__loader__).__name__, importlib.util.find_spec("vllm.v1.utils").name)


def test_hooks_wait_for_whole_modules(record):
    expected = "['json', ('after', True), 'no such module'] SourceFileLoader vllm.v1.utils\n"
    assert record(imports_later).stdout == expected


def imports_failing():
    from sa_profile.vllm.imports import when_imported

    when_imported("vllm.v1.utils", lambda module: 1 / 0)
    import vllm.v1.utils

    print(vllm.v1.utils.__name__)


def test_a_hook_that_fails_fails_no_import(record):
    trace = record(imports_failing)
    assert trace.stdout == "vllm.v1.utils\n" and "ZeroDivisionError" in trace.stderr


# /start_profile


def profiled():
    import asyncio
    import time

    import sa_profile

    plugin.register()
    from vllm.v1.engine.async_llm import AsyncLLM

    client = AsyncLLM(None)

    def wait_for(state):
        until = time.monotonic() + 5
        while sa_profile.is_enabled() != state and time.monotonic() < until:
            time.sleep(0.01)
        return sa_profile.is_enabled() == state

    print(sa_profile.is_enabled(), end=" ")
    asyncio.run(client.start_profile())
    print(wait_for(True), end=" ")
    sa_profile.instant("inside")
    asyncio.run(client.stop_profile())
    print(wait_for(False))
    sa_profile.instant("outside")


def test_start_and_stop_profile_switch_a_paused_run(record):
    trace = record(profiled, SA_PROFILE_START="paused")
    assert trace.stdout == "False True True\n"
    assert len(trace.named("inside")) == 1 and not trace.named("outside")


def profiled_while_on():
    import asyncio

    import sa_profile

    plugin.register()
    from vllm.v1.engine.async_llm import AsyncLLM

    client = AsyncLLM(None)
    asyncio.run(client.start_profile())
    asyncio.run(client.stop_profile())
    print(sa_profile.is_enabled(), (sa_profile.directory() / "control").exists())


def test_a_recording_that_was_on_stays_on(record):
    trace = record(profiled_while_on)
    assert trace.stdout == "True False\n"
    assert len(trace.named("vllm.start_profile")) == 1 and len(trace.named("vllm.stop_profile")) == 1


def test_switching_without_a_run_is_told(told, monkeypatch):
    monkeypatch.setattr(control, "directory", lambda: None)
    monkeypatch.setattr(control, "tell", told.append)
    assert not control.switch("start") and len(told) == 1


def test_the_plugin_imports_nothing_of_vllm(tmp_path):
    program = "import sys, sa_profile.vllm; print([name for name in sys.modules if name.split('.')[0] == 'vllm'])"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_hook_points_are_read_from_sources(tmp_path, capsys):
    from sa_profile.vllm import hook_points

    core = tmp_path / "0.99" / "vllm" / "v1" / "engine" / "core.py"
    core.parent.mkdir(parents=True)
    core.write_text("class EngineCore:\n    def step(self): ...\nclass Other:\n    def add_request(self): ...\n")
    assert hook_points.main([str(tmp_path / "0.99")]) == 1
    rows = dict(line.split("|")[1:3] for line in capsys.readouterr().out.splitlines())
    assert rows[" `EngineCore.step` "] == " yes " and rows[" `EngineCore.add_request` "] == " **no** "
    assert rows[" `vllm.v1.utils._PROFILER_FUNC` "] == " **no** "
    assert hook_points.main([]) == 2 and hook_points.main([str(tmp_path / "absent")]) == 2


def test_a_wheel_is_read_as_a_folder_is(tmp_path):
    import zipfile
    from pathlib import Path

    from sa_profile.vllm.hook_points import POINTS, Sources

    fake = Path(__file__).parent / "fake"
    wheel = tmp_path / "vllm-0.99-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in fake.rglob("*.py"):
            archive.write(path, path.relative_to(fake))
    of_wheel, of_folder = Sources(wheel), Sources(fake)
    assert of_wheel.label == "0.99"
    assert [of_wheel.has(*point) for point in POINTS] == [of_folder.has(*point) for point in POINTS]
    assert of_wheel.has("vllm.v1.engine.core", "EngineCore", "step")
