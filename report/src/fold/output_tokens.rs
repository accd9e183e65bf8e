//! The times of tokens, each once.

use crate::gather::value_record::ValueRecord;
use std::collections::HashSet;
use std::io;
use trace_store::sorter::Sorted;

/// The tokens of all requests. Frontend and engine may both have noted them: those of one process count.
pub(crate) struct OutputTokens<'a> {
    pub(crate) noted: &'a Sorted<ValueRecord>,
    /// What the tokens that count are sorted under.
    pub(crate) rows: &'a HashSet<u64>,
}

/// What the tokens of a request that a process noted are sorted under.
pub(crate) fn row(request: u64, process: usize) -> u64 {
    request ^ (process as u64).rotate_left(32)
}

impl OutputTokens<'_> {
    /// Calls `found` with each token, those of one request in the order of time.
    pub(crate) fn each(
        &self,
        mut found: impl FnMut(ValueRecord) -> io::Result<()>,
    ) -> io::Result<()> {
        self.noted
            .each(|token| match self.rows.contains(&token.of) {
                true => found(token),
                false => Ok(()),
            })
    }
}
