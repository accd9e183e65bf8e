"""/start_profile, and the hook points of a version of vLLM."""

import asyncio
import subprocess
import sys
import time
import zipfile

import pytest
import stand_ins as fake
from sa_profile._hooks.sources import Sources
from sa_profile._vllm import plugin
from sa_profile.vllm import hook_points

import sa_profile


def profiled():
    """Calls the functions behind vLLM's routes, and prints whether recording is on before, between and after them."""
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


@pytest.mark.parametrize("is_wheel", [False, True])
def test_hook_points_are_read_from_sources(tmp_path, capsys, is_wheel):
    core = tmp_path / "0.99" / "vllm" / "v1" / "engine" / "core.py"
    core.parent.mkdir(parents=True)
    core.write_text("from elsewhere import one as other\nclass EngineCore:\n    def step(self): ...\nclass Other:\n    def add_request(self): ...\n")
    place = tmp_path / "0.99"
    if is_wheel:
        place = tmp_path / "vllm-0.99-py3-none-any.whl"
        with zipfile.ZipFile(place, "w") as archive:
            archive.write(core, core.relative_to(tmp_path / "0.99"))
    assert hook_points.main([str(place)]) == 1
    header, *lines = capsys.readouterr().out.splitlines()
    rows = dict(line.split("|")[1:3] for line in lines)
    assert rows[" `EngineCore.step` "] == " yes " and rows[" `EngineCore.add_request` "] == " **no** "
    assert rows[" `vllm.v1.utils._PROFILER_FUNC` "] == " **no** " and " 0.99 " in header
    sources = Sources(place)
    assert sources.has("vllm.v1.engine.core", None, "other") and not sources.has("vllm.v1.engine.core", None, "one")
    assert hook_points.main([]) == 2 and hook_points.main([str(tmp_path / "absent")]) == 2
