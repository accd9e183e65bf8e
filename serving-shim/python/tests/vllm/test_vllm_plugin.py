"""/start_profile, and what a version of vLLM has to hook."""

import asyncio
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import stand_ins as fake
from sa_profile._hooks.sources import Sources
from sa_profile._vllm import plugin
from sa_profile.vllm import hook_points

import sa_profile


def profiled():
    """Calls what vLLM's routes call, and prints whether recording is on before, between and after."""
    plugin.register()
    client = fake.AsyncLLM(None)
    was_on = sa_profile.is_enabled()

    def is_on(expected):
        until = time.monotonic() + 5
        while sa_profile.is_enabled() != expected and time.monotonic() < until:
            time.sleep(0.01)
        return sa_profile.is_enabled()

    asyncio.run(client.start_profile())
    print(was_on, is_on(True), end=" ")
    sa_profile.instant("inside")
    asyncio.run(client.stop_profile())
    print(is_on(was_on), (sa_profile.directory() / "control").exists())
    sa_profile.instant("outside")


def test_start_and_stop_profile_switch_a_paused_run(record):
    trace = record(profiled, SA_PROFILE_START="paused")
    assert trace.stdout == "False True False True\n"
    assert len(trace.named("inside")) == 1 and not trace.named("outside")


def test_a_recording_that_was_on_stays_on(record):
    trace = record(profiled)
    assert trace.stdout == "True True True False\n"
    assert len(trace.named("vllm.start_profile")) == 1 and len(trace.named("vllm.stop_profile")) == 1


def test_the_plugin_imports_nothing_of_vllm(tmp_path):
    program = "import sys, sa_profile.vllm; print([name for name in sys.modules if name.split('.')[0] == 'vllm'])"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_hook_points_are_read_from_sources(tmp_path, capsys):
    core = tmp_path / "0.99" / "vllm" / "v1" / "engine" / "core.py"
    core.parent.mkdir(parents=True)
    core.write_text("from elsewhere import one as other\nclass EngineCore:\n    def step(self): ...\nclass Other:\n    def add_request(self): ...\n")
    assert hook_points.main([str(tmp_path / "0.99")]) == 1
    rows = dict(line.split("|")[1:3] for line in capsys.readouterr().out.splitlines())
    assert rows[" `EngineCore.step` "] == " yes " and rows[" `EngineCore.add_request` "] == " **no** "
    assert rows[" `vllm.v1.utils._PROFILER_FUNC` "] == " **no** "
    sources = Sources(tmp_path / "0.99")
    assert sources.has("vllm.v1.engine.core", None, "other") and not sources.has("vllm.v1.engine.core", None, "one")
    assert hook_points.main([]) == 2 and hook_points.main([str(tmp_path / "absent")]) == 2


def test_a_wheel_is_read_as_a_folder_is(tmp_path):
    folder = Path(__file__).parent / "fake"
    wheel = tmp_path / "vllm-0.99-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in folder.rglob("*.py"):
            archive.write(path, path.relative_to(folder))
    of_wheel, of_folder = Sources(wheel), Sources(folder)
    assert of_wheel.label == "0.99"
    assert [of_wheel.has(*point) for point in hook_points.POINTS] == [of_folder.has(*point) for point in hook_points.POINTS]
    assert of_wheel.has("vllm.v1.engine.core", "EngineCore", "step")
