"""The scenarios of workload.py, with what must come of each."""

import signal
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Scenario:
    name: str
    #: What the slices of the devices must show, among other names.
    slices: frozenset[str]
    ranks: int = 1
    status: int = 0
    faults: str = ""
    #: Names of other events that must be there.
    marks: frozenset[str] = frozenset()
    #: A function that the simulated runtime must have.
    needs: str = ""
    #: Launches that may have no slice if they are counted, by the name of the count.
    counted: frozenset[str] = field(default=frozenset())
    #: Counts of launches that the runtime refuses, so that there is no task.
    refused: frozenset[str] = field(default=frozenset())
    #: Slices that there must be at least.
    least: int = 20


COLLECTIVES = {"HcclAllReduce", "HcclAllGather", "HcclReduceScatter", "HcclBroadcast", "HcclAlltoAll"}

SCENARIOS = (
    Scenario("eager", frozenset({"Matmul", "Add", "Relu", "sim_add_one", "Mul", "aclrtMemcpyAsync"})),
    Scenario("graph", frozenset({"aclmdlRIExecuteAsync", "Mul"})),
    Scenario("updated", frozenset({"aclmdlRIExecuteAsync", "Mul"}), needs="aclmdlRICaptureTaskUpdateBegin"),
    Scenario("collectives", frozenset(COLLECTIVES | {"Mul", "Relu"}), ranks=2),
    # What the device says of tasks after the failed one cannot be had. Those of the ten before have been asked for by then.
    Scenario("exception", frozenset({"Matmul"}), faults="kernel:15=507015", marks=frozenset({"device_lost"}), counted=frozenset({"rejected_error"}), refused=frozenset({"failed"}), least=10),
    Scenario("killed", frozenset({"Mul", "Relu"}), status=-signal.SIGKILL),
)
