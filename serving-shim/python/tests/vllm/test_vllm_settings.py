"""The settings of the engine: recorded once per process, from an allow-list."""

import enum
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import stand_ins as fake
from sa_profile._engine import settings as common
from sa_profile._vllm import settings
from sa_profile.vllm import register

FORMAT = Path(__file__).parents[4] / "docs" / "FORMAT.md"
SETTINGS = dict(
    engine="vllm", engine_version="0.99.0", torch_version="2.99", api_server_count=2, tensor_parallel_size=4, pipeline_parallel_size=1,
    data_parallel_size=1, max_num_seqs=8, max_num_batched_tokens=2048, async_scheduling=True, max_model_len=4096, num_kv_blocks=900,
    kv_block_size=16, enable_prefix_caching=False, graph_mode="FULL_AND_PIECEWISE", capture_sizes=[1, 2, 4], kv_role="kv_producer",
)  # fmt: skip


class GraphMode(enum.Enum):
    FULL_AND_PIECEWISE = (2, 1)


def config(**changed):
    """Returns a configuration in the form that vLLM has after sizing the KV cache, with parts replaced."""
    parts = dict(
        model_config=SimpleNamespace(model="/models/secret", hf_token="hf_secret", max_model_len=4096),
        parallel_config=SimpleNamespace(_api_process_count=2, tensor_parallel_size=4, pipeline_parallel_size=1, data_parallel_size=1),
        scheduler_config=SimpleNamespace(max_num_seqs=8, max_num_batched_tokens=2048, async_scheduling=True),
        cache_config=SimpleNamespace(block_size=16, enable_prefix_caching=False),
        compilation_config=SimpleNamespace(cudagraph_mode=GraphMode.FULL_AND_PIECEWISE, cudagraph_capture_sizes=[1, 2, 4]),
        kv_transfer_config=SimpleNamespace(kv_role="kv_producer", kv_connector_extra_config={"password": "secret"}),
        sized=SimpleNamespace(num_blocks=900),
    )
    return SimpleNamespace(**{**parts, **changed})


def build_engine(**changed):
    register()
    sys.modules["torch"] = SimpleNamespace(__version__="2.99")
    core = fake.EngineCore(fake.Scheduler(), fake.Executor(), vllm_config=config(**changed))
    print(core.kv_cache)


def build_older_engine():
    build_engine(sized=(900, 0, None), kv_transfer_config=None, compilation_config=SimpleNamespace(use_cudagraph=True))


def build_odd_engine():
    class Broken:
        @property
        def max_num_seqs(self):
            raise RuntimeError("not today")

        max_num_batched_tokens = 1.5
        async_scheduling = None

    graphs = SimpleNamespace(cudagraph_mode="x" * 65, cudagraph_capture_sizes=["secret", *range(300)])
    build_engine(scheduler_config=Broken(), compilation_config=graphs, sized=None, parallel_config=None)


def build_ascend_engine():
    sys.modules["vllm_ascend"] = sys.modules["torch_npu"] = SimpleNamespace(__version__="2.9.post1")
    build_engine()


def build_server():
    register()
    fake.AsyncLLM(config(parallel_config=SimpleNamespace(_api_process_count=3, data_parallel_size=2)))


def build_server_without_config():
    register()
    fake.AsyncLLM(None)


@pytest.mark.parametrize("variables", [{}, {"SA_PROFILE_START": "paused"}])
def test_an_engine_records_its_settings_even_while_it_is_paused(record, variables):
    trace = record(build_engine, **variables)
    assert trace.stdout == "namespace(num_blocks=900)\n" and trace.stderr == ""
    assert trace.one("engine_settings") == SETTINGS
    trace.merge()
    assert trace.one("engine_settings") == SETTINGS


def test_settings_that_an_older_version_lacks_are_left_out(record):
    lacking = ("graph_mode", "capture_sizes", "kv_role")
    assert record(build_older_engine).one("engine_settings") == {name: value for name, value in SETTINGS.items() if name not in lacking}


def test_odd_values_are_left_out_and_reported_nowhere(record):
    trace = record(build_odd_engine)
    assert trace.stderr == "" and trace.stdout == "None\n"
    kept = ("engine", "engine_version", "torch_version", "max_model_len", "kv_block_size", "enable_prefix_caching", "kv_role")
    assert trace.one("engine_settings") == {**{name: SETTINGS[name] for name in kept}, "capture_sizes": list(range(common.MAX_SIZES))}


def test_versions_on_ascend(record, tmp_path):
    for machine in ("x86_64", "aarch64"):
        info = tmp_path / f"{machine}-linux" / "ascend_toolkit_install.info"
        info.parent.mkdir()
        info.write_text("package_name=Ascend-cann-toolkit\nversion=8.5.0\npath=/secret\n")
    found = record(build_ascend_engine, ASCEND_TOOLKIT_HOME=str(tmp_path)).one("engine_settings")
    assert found == {**SETTINGS, "engine": "vllm-ascend", "torch_npu_version": "2.9.post1", "cann_version": "8.5.0"}


def test_a_server_records_what_it_knows(record):
    found = record(build_server).one("engine_settings")
    assert {name: found[name] for name in settings.SERVER_SETTINGS} == dict(api_server_count=3, data_parallel_size=2) and "max_num_seqs" not in found
    trace = record(build_server_without_config)
    assert trace.stderr == "" and trace.args("engine_settings")[-1]["engine"] == "vllm"


@pytest.mark.skipif(not FORMAT.exists(), reason="SKIPPED the list in docs/FORMAT.md: the page is not next to the package")
def test_the_page_lists_each_setting():
    _, _, section = FORMAT.read_text().partition("### 2.8 ")
    listed = set(re.findall(r"^\| `(\w+)` \|", section.partition("## 3. ")[0], re.MULTILINE))
    assert listed == {"num_kv_blocks", *settings.ENGINE_SETTINGS, *common._versions(), "engine", "engine_version", "vllm_ascend_version"}
