//! Steps while all of them are sorted.

use super::edge::number;
use std::cmp::Reverse;
use trace_store::sorter::Record;

/// The tokens of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepTokens {
    pub(crate) process: usize,
    /// When the engine had taken its output in.
    pub(crate) ts_ns: i64,
    pub(crate) prefill: u64,
    pub(crate) decode: u64,
}

/// The tokens that were speculated in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepSpeculation {
    pub(crate) process: usize,
    pub(crate) drafted: u64,
    pub(crate) accepted: u64,
}

/// The key of a step that has none.
const NO_KEY: u32 = u32::MAX;

/// A step of a worker or an engine. The order of these puts the steps of a worker first, and a step before the steps inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StepRecord {
    pub(crate) process: u32,
    pub(crate) is_engine: bool,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: Reverse<i64>,
    /// The row of a worker's span.
    pub(crate) row: u64,
    /// The key of a worker's span, by its number.
    key: u32,
    /// The number of requests that the span names; 0 if it names none.
    pub(crate) requests: u32,
    /// The tokens that an engine put into it.
    pub(crate) prefill_tokens: u64,
    pub(crate) decode_tokens: u64,
}

impl StepRecord {
    /// Returns the step of a worker's span.
    pub(crate) fn of_span(process: u32, row: u64, times: (i64, i64), key: u32) -> StepRecord {
        StepRecord {
            process,
            is_engine: key == NO_KEY,
            start_ns: times.0,
            end_ns: Reverse(times.1),
            row,
            key,
            requests: 0,
            prefill_tokens: 0,
            decode_tokens: 0,
        }
    }

    /// Returns the step of an engine that ended at the time of its counter. It begins at the previous value.
    pub(crate) fn of_tokens(since_ns: Option<i64>, tokens: &StepTokens) -> StepRecord {
        let times = (since_ns.unwrap_or(tokens.ts_ns), tokens.ts_ns);
        StepRecord {
            prefill_tokens: tokens.prefill,
            decode_tokens: tokens.decode,
            ..StepRecord::of_span(number(tokens.process), 0, times, NO_KEY)
        }
    }

    /// Returns the step with another start and end.
    pub(crate) fn at(self, (start_ns, end_ns): (i64, i64)) -> StepRecord {
        StepRecord {
            start_ns,
            end_ns: Reverse(end_ns),
            ..self
        }
    }

    /// Returns the number of a worker's key. An engine's step has none.
    pub(crate) fn key(&self) -> Option<u32> {
        (!self.is_engine).then_some(self.key)
    }

    /// Returns it with the key's number among the keys of all chunks.
    pub(crate) fn renumbered(self, numbers: &[u32]) -> StepRecord {
        let key = self.key().map_or(NO_KEY, |key| numbers[key as usize]);
        StepRecord { key, ..self }
    }

    pub(crate) fn dur_ns(&self) -> i64 {
        self.end_ns.0.saturating_sub(self.start_ns)
    }
}

impl Record for StepRecord {}
