//! One request inside the engine core.

use super::kv::BlockId;
use crate::protocol::{NewRequest, Sequence, Token};

/// A waiting or running request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: String,
    /// The request's blocks of the cache.
    pub(crate) blocks: Vec<BlockId>,
    /// The prompt and the tokens generated so far.
    context: Vec<Token>,
    /// Number of tokens of the context that are in the workers' cache.
    cached: usize,
    /// Number of tokens that are still to be generated.
    remaining: usize,
}

impl Request {
    /// Creates a request that has not run yet.
    pub(crate) fn new(new: NewRequest) -> Request {
        Request {
            id: new.request_id,
            blocks: Vec::new(),
            context: new.prompt,
            cached: 0,
            remaining: new.max_tokens,
        }
    }

    /// Returns the number of tokens in the cache after this request's next step.
    pub(crate) fn context_len(&self) -> usize {
        self.context.len()
    }

    /// Returns the request's part of the next step: the tokens that are not yet in the cache.
    pub(crate) fn next(&self) -> Sequence {
        Sequence {
            request_id: self.id.clone(),
            position: self.cached,
            tokens: self.context[self.cached..].to_vec(),
        }
    }

    /// Adds the token that a step produced. Returns true if it was the last one.
    pub(crate) fn accept(&mut self, token: Token) -> bool {
        self.cached = self.context.len();
        self.context.push(token);
        self.remaining = self.remaining.saturating_sub(1);
        self.remaining == 0
    }

    /// Resets the cache position, because the request's blocks were released. All its tokens must run again.
    pub(crate) fn reset_cache(&mut self) {
        self.cached = 0;
    }
}
