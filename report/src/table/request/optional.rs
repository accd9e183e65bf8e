//! Numbers that may be missing, in no more room than the numbers themselves: a run may have millions of requests.

/// A time in ns, if it is known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct OptionalNs(i64);

/// A number of tokens, if it is known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct OptionalTokens(u64);

impl OptionalNs {
    pub(crate) fn get(self) -> Option<i64> {
        (self.0 != i64::MIN).then_some(self.0)
    }
}

impl OptionalTokens {
    pub(crate) fn get(self) -> Option<u64> {
        (self.0 != u64::MAX).then_some(self.0)
    }
}

impl From<Option<i64>> for OptionalNs {
    fn from(ns: Option<i64>) -> OptionalNs {
        OptionalNs(ns.unwrap_or(i64::MIN))
    }
}

impl From<Option<u64>> for OptionalTokens {
    fn from(tokens: Option<u64>) -> OptionalTokens {
        OptionalTokens(tokens.unwrap_or(u64::MAX))
    }
}

impl std::fmt::Debug for OptionalNs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

impl std::fmt::Debug for OptionalTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}
