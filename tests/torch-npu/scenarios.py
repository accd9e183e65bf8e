"""The scenarios of workload.py with their expected results."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Scenario:
    name: str
    #: Names that the devices' slices must include.
    slices: frozenset[str]
    ranks: int = 1
    status: int = 0
    faults: str = ""
    #: Names and counts of instants and other spans.
    marks: Mapping[str, int] = field(default_factory=dict)
    #: Value of `SA_PROFILE_DEVICE`.
    device: str = "sim"
    #: Library of CANN to preload after ours, by its path in an installation.
    preloaded: str = ""
    #: Names of the counts of launches that may have no slice.
    counted: frozenset[str] = field(default=frozenset())
    #: Counts of launches that the runtime refuses and that have no task.
    refused: frozenset[str] = field(default=frozenset())
    #: Minimum number of slices.
    least: int = 20


COLLECTIVES = {"HcclAllReduce", "HcclAllGather", "HcclReduceScatter", "HcclBroadcast", "HcclAlltoAll"}

SCENARIOS = (
    Scenario("eager", frozenset({"Matmul", "Add", "Relu", "sim_add_one", "InplaceMuls", "aclrtMemcpyAsync"})),
    Scenario("updated", frozenset({"aclmdlRIExecuteAsync", "InplaceMuls"})),
    Scenario("kernels", frozenset({"aclmdlRIExecuteAsync", "InplaceMuls"}), device="sim,mspti", marks={"mspti": 1}),
    Scenario("marks", frozenset({"InplaceMuls"}), preloaded="libmspti.so", marks={"step": 20, "part": 20, "begin": 1, "on the stream": 1}),
    Scenario("collectives", frozenset(COLLECTIVES | {"InplaceMuls", "Relu"}), ranks=2),
    # After the failed task the device returns no times. Those of the ten tasks before it have been read by then.
    Scenario("exception", frozenset({"Matmul"}), faults="kernel:15=507015", marks={"device_lost": 1}, counted=frozenset({"rejected_error"}), refused=frozenset({"failed"}), least=10),
    Scenario("killed", frozenset({"InplaceMuls", "Relu"}), status=-signal.SIGKILL),
)
