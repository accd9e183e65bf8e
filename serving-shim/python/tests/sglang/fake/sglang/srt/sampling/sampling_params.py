from dataclasses import dataclass


@dataclass
class SamplingParams:
    """The fake model emits the stop token as output number `custom_params["stop_at"]`."""

    max_new_tokens: int | None = 128
    json_schema: str | None = None
    regex: str | None = None
    ebnf: str | None = None
    structural_tag: str | None = None
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    no_stop_trim: bool = False
    stream_interval: int | None = None
    custom_params: dict | None = None
