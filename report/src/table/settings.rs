//! The settings of engines, as their plugins recorded them.

use serde::Serialize;
use std::collections::BTreeMap;

/// The settings of one engine process (FORMAT.md, `engine_settings`).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EngineSettings {
    /// Number of the process among [`Recorded::processes`](crate::Recorded::processes).
    pub process: usize,
    /// Names of settings and their values.
    pub values: BTreeMap<String, serde_json::Value>,
}

/// Names of settings. FORMAT.md explains them.
pub mod setting {
    /// All settings. A report ignores other names.
    pub const ALL: [&str; 20] = [
        "engine",
        "engine_version",
        "vllm_ascend_version",
        "torch_version",
        "torch_npu_version",
        "cann_version",
        MAX_NUM_SEQS,
        MAX_NUM_BATCHED_TOKENS,
        MAX_MODEL_LEN,
        "async_scheduling",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "data_parallel_size",
        API_SERVER_COUNT,
        NUM_KV_BLOCKS,
        KV_BLOCK_SIZE,
        "enable_prefix_caching",
        "kv_role",
        GRAPH_MODE,
        "capture_sizes",
    ];
    /// Maximum number of requests that run at once.
    pub const MAX_NUM_SEQS: &str = "max_num_seqs";
    /// Maximum number of tokens in one step.
    pub const MAX_NUM_BATCHED_TOKENS: &str = "max_num_batched_tokens";
    /// Number of blocks of the KV cache.
    pub const NUM_KV_BLOCKS: &str = "num_kv_blocks";
    /// Number of tokens in a block of the KV cache.
    pub const KV_BLOCK_SIZE: &str = "kv_block_size";
    /// Maximum number of tokens of a request, prompt and output together.
    pub const MAX_MODEL_LEN: &str = "max_model_len";
    /// Mode of graph capture, such as `FULL_AND_PIECEWISE`, or `NONE` if steps use no graphs.
    pub const GRAPH_MODE: &str = "graph_mode";
    /// Number of API server processes.
    pub const API_SERVER_COUNT: &str = "api_server_count";
}
