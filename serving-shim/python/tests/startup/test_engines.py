"""An SGLang before 0.5.12, which loads no plugins, gets the plugin from the folder that `sa-profile run --python` puts into PYTHONPATH."""

import pytest

from .conftest import STARTUP

PROGRAM = """
import sys
sys.path.insert(0, "engines")
import sglang.srt.managers.scheduler as scheduler
print(hasattr(scheduler.Scheduler.run_batch, "_sa_profile_chained"))
"""
SCHEDULER = """
class Scheduler:
    def _add_request_to_queue(self, req, is_retracted=False): ...
    def run_batch(self, batch): ...
    def process_batch_result(self, batch, result): ...
    def abort_request(self, recv_req): ...
"""


@pytest.mark.parametrize(("loads_plugins", "is_hooked"), [(False, True), (True, False)])
def test_an_engine_that_loads_no_plugins_gets_the_plugin(script, tmp_path, loads_plugins, is_hooked):
    one = script(PROGRAM)
    managers = tmp_path / "engines" / "sglang" / "srt" / "managers"
    managers.mkdir(parents=True)
    (managers / "scheduler.py").write_text(SCHEDULER)
    if loads_plugins:
        (managers.parent / "plugins").mkdir()
    # The folder with SGLang is on the path when Python starts, like an installed package.
    path = f"{tmp_path / 'engines'}:{STARTUP.parent.parent}"
    done = one.run(PYTHONPATH=path, SA_PROFILE_SAMPLE_MS="0")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{is_hooked}\n", "")
