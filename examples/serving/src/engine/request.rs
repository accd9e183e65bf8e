//! One request inside the engine core.

use super::kv::BlockId;
use crate::protocol::{NewRequest, Sequence, Token};

/// A request, waiting or running.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: String,
    /// Its blocks of the cache.
    pub(crate) blocks: Vec<BlockId>,
    /// The prompt and the tokens generated so far.
    context: Vec<Token>,
    /// How many tokens of the context the workers have in their cache.
    cached: usize,
    /// Tokens still to generate.
    remaining: usize,
}

impl Request {
    /// A request of which nothing has run yet.
    pub(crate) fn new(new: NewRequest) -> Request {
        Request {
            id: new.request_id,
            blocks: Vec::new(),
            context: new.prompt,
            cached: 0,
            remaining: new.max_tokens,
        }
    }

    /// Tokens that the cache holds after this request's next step.
    pub(crate) fn context_len(&self) -> usize {
        self.context.len()
    }

    /// Its part of the next step: what the cache does not hold yet.
    pub(crate) fn next(&self) -> Sequence {
        Sequence {
            request_id: self.id.clone(),
            position: self.cached,
            tokens: self.context[self.cached..].to_vec(),
        }
    }

    /// Takes the token that its step produced; true if it was the last.
    pub(crate) fn accept(&mut self, token: Token) -> bool {
        self.cached = self.context.len();
        self.context.push(token);
        self.remaining = self.remaining.saturating_sub(1);
        self.remaining == 0
    }

    /// Forgets the cache, which was given to another request: everything so far must run again.
    pub(crate) fn reset_cache(&mut self) {
        self.cached = 0;
    }
}
