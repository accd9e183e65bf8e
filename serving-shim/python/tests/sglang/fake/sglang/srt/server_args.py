from dataclasses import dataclass


@dataclass
class ServerArgs:
    model_path: str = "/models/tiny"
    served_model_name: str = "tiny"
    tp_size: int = 1
    pp_size: int = 1
    dp_size: int = 1
    ep_size: int = 1
    enable_dp_attention: bool = False
    load_balance_method: str = "round_robin"
    context_length: int | None = 4096
    dtype: str = "bfloat16"
    kv_cache_dtype: str = "auto"
    quantization: str | None = None
    max_running_requests: int | None = 64
    max_total_tokens: int | None = 10000
    chunked_prefill_size: int | None = 64
    max_prefill_tokens: int = 16384
    enable_mixed_chunk: bool = False
    page_size: int = 1
    schedule_policy: str = "fcfs"
    disable_radix_cache: bool = False
    disable_overlap_schedule: bool = False
    disable_cuda_graph: bool = False
    cuda_graph_bs: list | None = None
    speculative_algorithm: str | None = None
    speculative_num_draft_tokens: int | None = None
    disaggregation_mode: str = "null"
    attention_backend: str | None = "torch_native"
    stream_interval: int = 1
    enable_metrics: bool = False
    tokenizer_worker_num: int = 1
    incremental_streaming_output: bool = True


@dataclass
class PortArgs:
    tokenizer_ipc_name: str
    scheduler_input_ipc_name: str
    detokenizer_ipc_name: str
    nccl_port: int
    rpc_ipc_name: str
    metrics_ipc_name: str
    tokenizer_worker_ipc_name: str | None
    decoupled_spec_ipc_config: object
    load_collector_ipc_name: str = ""
    instance_id: str = ""
