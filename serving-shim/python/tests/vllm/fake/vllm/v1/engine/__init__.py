import enum
from dataclasses import dataclass, field


class FinishReason(enum.IntEnum):
    STOP = 0
    LENGTH = 1
    ABORT = 2


@dataclass
class PrefillStats:
    num_cached_tokens: int = 0


@dataclass
class EngineCoreRequest:
    request_id: str
    prompt_token_ids: list
    max_tokens: int = 3
    external_req_id: str | None = None


@dataclass
class EngineCoreOutput:
    request_id: str
    new_token_ids: list
    finish_reason: FinishReason | None = None
    prefill_stats: PrefillStats | None = None


@dataclass
class EngineCoreOutputs:
    outputs: list = field(default_factory=list)
