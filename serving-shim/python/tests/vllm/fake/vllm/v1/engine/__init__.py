import enum
import time
from dataclasses import dataclass, field


class FinishReason(enum.IntEnum):
    LENGTH = 1


class EngineCoreEventType(enum.IntEnum):
    QUEUED = 1
    SCHEDULED = 2
    PREEMPTED = 3


@dataclass
class EngineCoreEvent:
    type: EngineCoreEventType
    timestamp: float


@dataclass
class PrefillStats:
    num_cached_tokens: int = 0


@dataclass
class EngineCoreRequest:
    request_id: str
    prompt_token_ids: list
    max_tokens: int = 3
    external_req_id: str | None = None
    arrival_time: float = 0.0
    sampling_params: object = None
    lora_request: object = None
    priority: int = 0


@dataclass
class EngineCoreOutput:
    request_id: str
    new_token_ids: list
    finish_reason: FinishReason | None = None
    prefill_stats: PrefillStats | None = None


@dataclass
class EngineCoreOutputs:
    outputs: list = field(default_factory=list)
    scheduler_stats: object = None
    timestamp: float = field(default_factory=time.monotonic)
