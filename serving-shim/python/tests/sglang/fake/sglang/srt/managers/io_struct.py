import enum
import uuid
from array import array
from dataclasses import dataclass, field

from sglang.srt.sampling.sampling_params import SamplingParams

# Messages between processes have slots, because in SGLang they have neither a `__dict__` nor weak references.
HEALTH_CHECK_RID_PREFIX = "HEALTH_CHECK"


@dataclass(kw_only=True, slots=True)
class BaseReq:
    rid: str | None = None
    http_worker_ipc: str | None = None


@dataclass(kw_only=True, slots=True)
class BaseBatchReq:
    rids: list | None = None
    http_worker_ipcs: list | None = None


@dataclass
class GenerateReqInput:
    """A request as it comes from an HTTP handler. `rid` and the prompt may be lists, for several requests in one."""

    rid: str | list | None = field(default=None, kw_only=True)
    text: str | list | None = None
    input_ids: list | None = None
    sampling_params: dict | None = None
    stream: bool = False
    log_metrics: bool = True
    lora_path: str | None = None
    lora_id: str | None = None
    background: bool = False
    bootstrap_room: int | None = None
    routed_dp_rank: int | None = None
    priority: int | None = None
    received_time: float | None = None

    def normalize_batch_and_arguments(self):
        prompts = self.text if self.input_ids is None else self.input_ids
        self.is_single = not isinstance(prompts, list) or not isinstance(prompts[0], (str, list))
        self.sampling_params = self.sampling_params or {}
        if self.rid is None:
            self.rid = uuid.uuid4().hex
        if not self.is_single and isinstance(self.rid, str):
            self.rid = [f"{self.rid}_{at}" for at in range(len(prompts))]

    def __getitem__(self, i):
        part = GenerateReqInput(
            rid=self.rid[i],
            text=None if self.text is None else self.text[i],
            input_ids=None if self.input_ids is None else self.input_ids[i],
            sampling_params=self.sampling_params,
            stream=self.stream,
        )
        part.is_single = True
        return part


@dataclass(kw_only=True, slots=True)
class TokenizedGenerateReqInput(BaseReq):
    input_text: str | None
    input_ids: array | None
    sampling_params: SamplingParams
    stream: bool
    lora_id: str | None = None
    bootstrap_room: int | None = None
    routed_dp_rank: int | None = None
    priority: int | None = None
    time_stats: object = None

    def wrap_pickle_fields(self):
        self.time_stats = wrap_as_pickle(self.time_stats)

    def unwrap_pickle_fields(self):
        self.time_stats = unwrap_from_pickle(self.time_stats)


@dataclass(kw_only=True, slots=True)
class BatchTokenizedGenerateReqInput(BaseBatchReq):
    batch: list

    def __len__(self):
        return len(self.batch)

    def __getitem__(self, i):
        return self.batch[i]

    def __iter__(self):
        return iter(self.batch)


@dataclass(kw_only=True, slots=True)
class BatchTokenIDOutput(BaseBatchReq):
    finished_reasons: list
    decoded_texts: list
    decode_ids: list
    read_offsets: list
    output_ids: list | None
    skip_special_tokens: list
    spaces_between_special_tokens: list
    no_stop_trim: list
    prompt_tokens: list
    reasoning_tokens: list
    completion_tokens: list
    cached_tokens: list
    retraction_counts: list | None = None
    customized_info: object = None
    cached_tokens_details: list | None = None
    dp_ranks: list | None = None
    time_stats: object = None
    spec_verify_ct: list | None = None
    spec_num_correct_drafts: list | None = None


@dataclass(kw_only=True, slots=True)
class BatchStrOutput(BaseBatchReq):
    finished_reasons: list
    output_strs: list
    output_ids: list | None
    prompt_tokens: list
    completion_tokens: list
    reasoning_tokens: list
    cached_tokens: list
    retraction_counts: list | None = None
    customized_info: object = None
    cached_tokens_details: list | None = None
    dp_ranks: list | None = None
    time_stats: object = None
    spec_verify_ct: list | None = None
    spec_num_correct_drafts: list | None = None


@dataclass(kw_only=True, slots=True)
class AbortReq(BaseReq):
    abort_all: bool = False
    finished_reason: dict | None = None
    abort_message: str | None = None

    def __post_init__(self):
        if self.rid is None:
            self.rid = ""


class ProfileReqType(enum.Enum):
    START_PROFILE = 1
    STOP_PROFILE = 2


@dataclass(kw_only=True, slots=True)
class ProfileReq(BaseReq):
    req_type: ProfileReqType = ProfileReqType.START_PROFILE
    output_dir: str | None = None
    start_step: int | None = None
    num_steps: int | None = None
    activities: list | None = None
    profile_by_stage: bool = False
    with_stack: bool | None = None
    record_shapes: bool | None = None
    profile_id: str | None = None
    merge_profiles: bool = False
    profile_prefix: str | None = None
    profile_stages: list | None = None
    detailed_annotations: bool = False


@dataclass(kw_only=True, slots=True)
class ProfileReqOutput(BaseReq):
    success: bool
    message: str


def wrap_as_pickle(obj):
    return obj


def unwrap_from_pickle(obj):
    return obj


def sock_send(socket, obj, flags=0):
    socket.send(obj)


def sock_recv(socket, flags=0):
    return socket.recv()
