//! What prompts have in common.

use serde::Serialize;

/// What the prompts of an engine's requests have in common from their begin on, and what its prefix cache had of that. Of prompts with hashes of their blocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Prefixes {
    /// Requests that engines scheduled.
    pub requests: u64,
    /// Those with hashes of their prompt's blocks. All else is of these.
    pub n: u64,
    /// Tokens of their prompts.
    pub prompt_tokens: u64,
    /// Tokens of full blocks behind those with hashes. They count nowhere else: shares are of the other tokens.
    pub tokens_without_hash: u64,
    /// Tokens that an earlier prompt of the same engine had at the same place, behind the same tokens: what a cache without bounds has.
    pub shared_tokens: u64,
    /// The same as a share.
    pub shared_share: f64,
    /// What the cache had of blocks with hashes, of prompts where that is in the trace.
    pub cached_tokens: u64,
    /// The same as a share of the tokens of those prompts; `None` if there are none.
    pub cached_share: Option<f64>,
    /// Tokens of each prompt that no earlier one of its engine had there.
    pub unique: TokenQuantiles,
    /// How many prefixes several prompts have.
    pub shared: u64,
    /// The hundred that save most, that first.
    pub prefixes: Vec<Prefix>,
}

/// How a number of tokens is distributed. Percentiles are linear between ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TokenQuantiles {
    /// Of the mean prompt.
    pub mean: f64,
    /// Half of them have at most this.
    pub p50: f64,
    /// Nine in ten.
    pub p90: f64,
    /// 95 in 100.
    pub p95: f64,
    /// 99 in 100.
    pub p99: f64,
    /// Of the prompt that has most.
    pub max: u64,
}

/// A node of the radix tree of an engine's prompts: several prompts have all of its tokens, and fewer, if any, have one block more in common.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prefix {
    /// The engine, by number.
    pub engine: usize,
    /// The hash of its last block.
    pub prefix: String,
    /// Prompts that begin with it.
    pub requests: u64,
    /// Its length in tokens.
    pub tokens: u64,
    /// Those of them that are behind the next shorter prefix, which more prompts have.
    pub own_tokens: u64,
    /// `(requests − 1) · own_tokens`: what the second and all further prompts need not compute again.
    pub saved_tokens: u64,
    /// The same as a share of the tokens of all prompts that count.
    pub saved_share: f64,
    /// What the cache had of `saved_tokens`; `None` if that is of no prompt in the trace.
    pub hit_tokens: Option<u64>,
}
