"""Runs each scenario of workload.py without and with the preload library, and compares the recording with the log of the simulated NPU.

usage: suite.py PYTHON LIBRARIES PRELOAD TRACE_MERGE SCRATCH [SCENARIO...]

PYTHON has torch and torch_npu, LIBRARIES is the output folder of stubs.py. Exit status: 0 if all checks pass, 1 if one fails; stderr says which.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Set
from pathlib import Path

import compare
import merged
import stubs
import truth
from scenarios import SCENARIOS, Scenario

LIMIT_S = 300

#: Counts of launches that have a slice or run nothing themselves.
NOT_RUN = {"timed", "captured", "graph_update"}

#: Variables that must not come from the caller's environment.
FOREIGN = ("SA_PROFILE_", "ASCEND_", "LD_", "PYTHON", "TORCH", "NPU_", "HCCL_", "ACL_", "PYTORCH_")
WORKLOAD = Path(__file__).with_name("workload.py")


class Suite:
    def __init__(self, python: str, libraries: str, preload: str, merge: str, scratch: str) -> None:
        self.python, self.merge = python, merge
        self.libraries, self.preload, self.scratch = Path(libraries).resolve(), Path(preload).resolve(), Path(scratch).resolve()

    def problems_of(self, scenario: Scenario) -> list[str]:
        folder = self.scratch / scenario.name
        folder.mkdir(parents=True)
        cann = self._cann(scenario)
        bare = self._run(scenario, folder, "bare", cann)
        recorded = self._run(scenario, folder, "recorded", cann | self.recording(folder, scenario.device, cann.get("LD_PRELOAD")))
        problems = [f"{without} without the preload, {within} with it" for without, within in zip(bare, recorded) if without != within]
        problems += [f"exit {status} instead of {scenario.status}" for _, status in recorded if status != scenario.status]
        return problems + self._problems_of_trace(scenario, folder)

    def _cann(self, scenario: Scenario) -> dict[str, str]:
        """Returns the apparent installation folder of CANN, and the library that is preloaded from it."""
        cann = self.libraries / stubs.CANN
        return {"ASCEND_HOME_PATH": str(cann), "ASCEND_OPP_PATH": str(cann / "opp"), "LD_PRELOAD": str(cann / "lib64" / scenario.preloaded)} if scenario.preloaded else {}

    def recording(self, folder: Path, device: str = "sim", behind: str | None = None) -> dict[str, str]:
        """Returns the variables that make a process record, with `behind` preloaded after our library."""
        return {
            "LD_PRELOAD": ":".join(filter(None, [str(self.preload), behind])),
            "SA_PROFILE_DIR": str(folder / "run"),
            "SA_PROFILE_LEVEL": "verbose",
            "SA_PROFILE_DEVICE": device,
            "SA_PROFILE_SIM_LIBRARY": str(self.libraries / "libacl_rt.so"),
            "ASCEND_SIM_TRUTH": str(folder / "truth.{pid}"),
            "ASCEND_SIM_TRUTH_THROUGH": "1",
        }

    def _run(self, scenario: Scenario, folder: Path, kind: str, variables: dict[str, str]) -> list[tuple[str, int]]:
        """Returns output and exit status of each rank."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(scenario.ranks), "OMP_NUM_THREADS": "1"}
        common = {**inherited, **meeting, "LD_LIBRARY_PATH": str(self.libraries), "ASCEND_SIM_FAULTS": scenario.faults, **variables}
        ranks = []
        for rank in range(scenario.ranks):
            said = folder / f"stderr.{kind}.{rank}"
            with said.open("w") as stderr:
                command = [self.python, str(WORKLOAD), scenario.name]
                pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": stderr}
                ranks.append(subprocess.Popen(command, env={**common, "RANK": str(rank)}, cwd=folder, text=True, **pipes))
        try:
            return [(rank.communicate(timeout=LIMIT_S)[0], rank.returncode) for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()

    def _problems_of_trace(self, scenario: Scenario, folder: Path) -> list[str]:
        said = [line for path in folder.glob("stderr.recorded.*") for line in path.read_text().splitlines() if line.startswith("sa-profile")]
        trace, tasks, problems = self.compared(scenario.name, folder, scenario.device, scenario.slices)
        names = trace.names()
        marks = [f"{names[name]} of {name} in the trace, {count} were expected" for name, count in scenario.marks.items() if names[name] != count]
        return [*said, *problems, *_uncounted(scenario, trace, tasks), *marks]

    def compared(self, name: str, folder: Path, device: str, slices: Set[str]) -> tuple[merged.Trace, int, list[str]]:
        """Merges the recording. Returns the trace, the number of tasks, and the problems of the slices and records."""
        subprocess.run([self.merge, "--quiet", str(folder / "run")], check=True)
        trace, tasks = merged.Trace(folder / "run" / "trace.json"), truth.read(folder)
        print(f"{name}: {len(trace.slices)} slices of {len(tasks)} tasks", flush=True)
        problems = [f"{trace.lost} events lost, damage {trace.damage}"] if trace.lost or trace.damage else []
        problems += [f"not on the device: {absent}" for absent in sorted(slices - {slice.span.name for slice in trace.slices})]
        problems += [*compare.problems_of_slices(trace, tasks), *compare.problems_of_records(trace, truth.records(folder), device)]
        return trace, len(tasks), problems


def _uncounted(scenario: Scenario, trace: merged.Trace, tasks: int) -> list[str]:
    """Yields tasks that have no slice and are not counted, and unexpected counts."""
    slices, counts = len(trace.slices), trace.counts()
    problems = [f"{slices} slices, at least {scenario.least} were expected"] if slices < scenario.least else []
    counted = sum(counts.get(name, 0) for name in scenario.counted)
    if slices + counted != tasks or set(counts) - scenario.counted - scenario.refused - NOT_RUN:
        problems.append(f"{slices} slices and {counted} counted of {tasks} tasks; counts {counts}")
    return problems


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def main() -> int:
    suite, wanted = Suite(*sys.argv[1:6]), sys.argv[6:]
    unknown = set(wanted) - {scenario.name for scenario in SCENARIOS}
    if unknown:
        print(f"torch-npu: no scenario {', '.join(sorted(unknown))} in scenarios.py", file=sys.stderr)
        return 1
    failed = 0
    for scenario in SCENARIOS:
        if wanted and scenario.name not in wanted:
            continue
        problems = suite.problems_of(scenario)
        failed += bool(problems)
        for problem in problems[:20]:
            print(f"torch-npu: {scenario.name}: {problem}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
