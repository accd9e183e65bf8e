//! Records of steps, as they are sorted.

use super::edge::number;
use super::request_moment::arg;
use std::cmp::Reverse;
use trace_merge::events::PlacedEvent;
use trace_store::sorter::Record;

/// Numbers of tokens in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepTokens {
    pub(crate) process: usize,
    /// Time at which the engine had processed the step's output.
    pub(crate) ts_ns: i64,
    pub(crate) prefill: u64,
    pub(crate) decode: u64,
}

/// Numbers of speculated tokens in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepSpeculation {
    pub(crate) process: usize,
    pub(crate) drafted: u64,
    pub(crate) accepted: u64,
}

/// Key of a step without a span.
const NO_KEY: u32 = u32::MAX;

/// A step of a worker or an engine. Sorted, the worker steps of a process come first, and a step comes before the steps
/// inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StepRecord {
    pub(crate) process: u32,
    pub(crate) is_engine: bool,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: Reverse<i64>,
    /// Track of a worker's span.
    pub(crate) track: u64,
    /// Key number of a worker's span.
    key: u32,
    /// Number of requests that the span names.
    pub(crate) requests: u32,
    /// Numbers of tokens that an engine put into the step.
    pub(crate) prefill_tokens: u64,
    pub(crate) decode_tokens: u64,
}

impl StepRecord {
    /// Creates the record of a worker's step from its span. `times` contains the start and the end in ns, and `key` is
    /// the number of the name key.
    pub(crate) fn from_span(process: u32, track: u64, times: (i64, i64), key: u32) -> StepRecord {
        StepRecord {
            process,
            is_engine: key == NO_KEY,
            start_ns: times.0,
            end_ns: Reverse(times.1),
            track,
            key,
            requests: 0,
            prefill_tokens: 0,
            decode_tokens: 0,
        }
    }

    /// Creates the record of an engine's step from its token counter. The step ends at the time of the counter. It
    /// starts at `since_ns`, the time of the previous value; without one, its duration is 0.
    pub(crate) fn from_tokens(since_ns: Option<i64>, tokens: &StepTokens) -> StepRecord {
        let times = (since_ns.unwrap_or(tokens.ts_ns), tokens.ts_ns);
        StepRecord {
            prefill_tokens: tokens.prefill,
            decode_tokens: tokens.decode,
            ..StepRecord::from_span(number(tokens.process), 0, times, NO_KEY)
        }
    }

    /// Returns a copy of the step with this start and end, in ns.
    pub(crate) fn with_times(self, (start_ns, end_ns): (i64, i64)) -> StepRecord {
        StepRecord {
            start_ns,
            end_ns: Reverse(end_ns),
            ..self
        }
    }

    /// Returns the number of the name key of a worker's span, or `None` for an engine's step.
    pub(crate) fn key(&self) -> Option<u32> {
        (!self.is_engine).then_some(self.key)
    }

    /// Returns a copy of the step with the run's key number instead of the chunk's. `numbers` contains the run's number
    /// for each key number of the chunk.
    pub(crate) fn renumbered(self, numbers: &[u32]) -> StepRecord {
        let key = self.key().map_or(NO_KEY, |key| numbers[key as usize]);
        StepRecord { key, ..self }
    }

    /// Returns the duration of the step, in ns.
    pub(crate) fn dur_ns(&self) -> i64 {
        self.end_ns.0.saturating_sub(self.start_ns)
    }
}

impl Record for StepRecord {}

/// Returns the number of the step that an event belongs to, if the event has one.
pub(crate) fn step_number(event: &PlacedEvent<'_>) -> Option<u64> {
    arg(event, "step").or_else(|| arg(event, "batch"))
}
