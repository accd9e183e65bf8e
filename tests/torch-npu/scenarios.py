"""The scenarios of workload.py, with what must come of each."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Scenario:
    name: str
    #: What the slices of the devices must show, among other names.
    slices: frozenset[str]
    ranks: int = 1
    status: int = 0
    faults: str = ""
    #: Names of instants and other spans that must be there, and how often.
    marks: Mapping[str, int] = field(default_factory=dict)
    #: What `SA_PROFILE_DEVICE` says.
    device: str = "sim"
    #: A library of CANN to preload behind ours, where an installation has it.
    preloaded: str = ""
    #: Launches that may have no slice if they are counted, by the name of the count.
    counted: frozenset[str] = field(default=frozenset())
    #: Counts of launches that the runtime refuses, so that there is no task.
    refused: frozenset[str] = field(default=frozenset())
    #: Slices that there must be at least.
    least: int = 20


COLLECTIVES = {"HcclAllReduce", "HcclAllGather", "HcclReduceScatter", "HcclBroadcast", "HcclAlltoAll"}

SCENARIOS = (
    Scenario("eager", frozenset({"Matmul", "Add", "Relu", "sim_add_one", "InplaceMuls", "aclrtMemcpyAsync"})),
    Scenario("updated", frozenset({"aclmdlRIExecuteAsync", "InplaceMuls"})),
    Scenario("kernels", frozenset({"aclmdlRIExecuteAsync", "InplaceMuls"}), device="sim,mspti", marks={"mspti": 1}),
    Scenario("marks", frozenset({"InplaceMuls"}), preloaded="libmspti.so", marks={"step": 20, "part": 20, "begin": 1, "on the stream": 1}),
    Scenario("collectives", frozenset(COLLECTIVES | {"InplaceMuls", "Relu"}), ranks=2),
    # What the device says of tasks after the failed one cannot be had. Those of the ten before have been asked for by then.
    Scenario("exception", frozenset({"Matmul"}), faults="kernel:15=507015", marks={"device_lost": 1}, counted=frozenset({"rejected_error"}), refused=frozenset({"failed"}), least=10),
    Scenario("killed", frozenset({"InplaceMuls", "Relu"}), status=-signal.SIGKILL),
)
