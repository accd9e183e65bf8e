"""vLLM-Ascend on the simulated NPU, without and with the plugin and the preload library. Compares the recording with the simulator's log, and follows each request to the device.

usage: serving.py PYTHON LIBRARIES PRELOAD TRACE_MERGE SCRATCH [SCENARIO...]

PYTHON has vLLM, vLLM-Ascend and sa-profile, LIBRARIES is the output folder of stubs.py. Exit status: 0 if all checks pass, 1 if one fails; stderr says which.
"""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "vllm")]
import followed
import model
import suite

HERE = Path(__file__).parent
LIMIT_S = 600
REQUESTS, TOKENS = 2, 6

#: The simulated workers do not synchronise. The first one answers, and the other may be some steps late when the server ends.
BEHIND_S = 5

#: Number of workers in each scenario, and names that the slices must include.
SCENARIOS = {
    "eager": (1, {"FusedInferAttentionScoreV2", "Matmul", "Rope", "_compute_slot_mapping_kernel", "ArgMax"}),
    "graph": (1, {"aclmdlRIExecuteAsync", "aclrtValueWrite", "ArgMax"}),
    "serve": (2, {"aclmdlRIExecuteAsync", "HcclAllReduce", "HcclAllGather", "ArgMax"}),
}


class Serving(suite.Suite):
    def problems(self, scenario: str) -> list[str]:
        folder = self.scratch / scenario
        bare = self._answers(scenario, folder / "bare", {})
        recorded = self._answers(scenario, folder / "recorded", self.recording(folder / "recorded", _device(scenario)))
        problems = [] if bare == recorded and len(bare) == REQUESTS else [f"{bare} without recording, {recorded} with it"]
        return problems + self._problems_of_run(scenario, folder / "recorded")

    def _answers(self, scenario: str, folder: Path, variables: dict[str, str]) -> list[str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith((*suite.FOREIGN, "VLLM_"))}
        environment = {
            **inherited,
            "PYTHONPATH": str(HERE / "first"),
            "LD_LIBRARY_PATH": str(self.libraries),
            "OMP_NUM_THREADS": "1",
            "ASCEND_SIM_DEVICES": "2",
            "PYTORCH_NPU_ALLOC_CONF": "expandable_segments:False",
            "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
            "VLLM_CACHE_ROOT": str(folder / "cache"),
            "VLLM_NO_USAGE_STATS": "1",
            "HF_HUB_OFFLINE": "1",
            **variables,
        }
        path = folder / "model"
        model.main(path)
        with (folder / "said").open("w") as said:
            options = {"env": environment, "cwd": folder, "stdin": subprocess.DEVNULL, "stdout": said, "stderr": subprocess.STDOUT}
            if scenario == "serve":
                return self._served(path, options)
            subprocess.run([self.python, str(HERE / "offline.py"), str(path), scenario], check=False, timeout=LIMIT_S, **options)
        return [line for line in (folder / "said").read_text().splitlines() if line.startswith("answer ")]

    def _served(self, path: Path, options: dict) -> list[str]:
        port = suite.free_port()
        sizes = "--max-model-len 256 --max-num-seqs 4 --max-num-batched-tokens 256 --num-gpu-blocks-override 64".split()
        command = [self.python, "-m", "vllm.entrypoints.cli.main", "serve", str(path), "--served-model-name", "random", "--load-format", "dummy", "--tensor-parallel-size", "2"]
        server = subprocess.Popen([*command, *sizes, "--host", "127.0.0.1", "--port", str(port)], **options)
        try:
            _wait_until_ready(server, port)
            answers = [_ask(port) for _ in range(REQUESTS)]
            time.sleep(BEHIND_S)
            server.send_signal(signal.SIGINT)
            return answers if server.wait(LIMIT_S) == 0 else [f"exit {server.returncode}"]
        finally:
            server.kill()

    def _problems_of_run(self, scenario: str, folder: Path) -> list[str]:
        said = [line for line in (folder / "said").read_text().splitlines() if "sa-profile" in line]
        workers, slices = SCENARIOS[scenario]
        trace, tasks, problems = self.compared(scenario, folder, _device(scenario), slices)
        if len(trace.slices) != tasks:
            problems.append(f"{len(trace.slices)} slices of {tasks} tasks")
        return [*said, *problems, *followed.problems_of(trace, REQUESTS, workers, TOKENS)]


def _device(scenario: str) -> str:
    """Returns the value of `SA_PROFILE_DEVICE`: the server's trace has MSPTI's records, too."""
    return "sim,mspti" if scenario == "serve" else "sim"


def _wait_until_ready(server: subprocess.Popen, port: int) -> None:
    limit = time.monotonic() + LIMIT_S
    while server.poll() is None and time.monotonic() < limit:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
            return
        except OSError:
            time.sleep(0.5)
    raise RuntimeError(f"the server is not ready: exit {server.poll()}")


def _ask(port: int) -> str:
    asked = {"model": "random", "prompt": [5, 6, 7, 8], "max_tokens": TOKENS, "temperature": 0, "ignore_eos": True}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/completions", json.dumps(asked).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=LIMIT_S) as response:
        answer = json.load(response)
    return json.dumps([answer["choices"][0]["text"], answer["usage"]["completion_tokens"]])


def main() -> int:
    serving, wanted = Serving(*sys.argv[1:6]), sys.argv[6:] or list(SCENARIOS)
    failed = 0
    for scenario in wanted:
        problems = serving.problems(scenario)
        failed += bool(problems)
        for problem in problems[:20]:
            print(f"vllm-ascend: {scenario}: {problem}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
