//! The times between the tokens of one request, as they come.

use super::histogram::{Histogram, TOKEN_BOUNDS};

/// The tokens of one request that one process noted.
#[derive(Clone, Debug)]
pub(super) struct TokenGaps {
    last_ns: i64,
    pub(super) gaps: Histogram,
}

impl TokenGaps {
    /// Begins with a token.
    pub(super) fn new(ns: i64) -> TokenGaps {
        TokenGaps {
            last_ns: ns,
            gaps: Histogram::new(&TOKEN_BOUNDS),
        }
    }

    /// Takes the next one. One that another thread told too late is behind the one before it all the same.
    pub(super) fn take(&mut self, ns: i64) {
        self.gaps.take(ns.saturating_sub(self.last_ns).max(0));
        self.last_ns = self.last_ns.max(ns);
    }
}
