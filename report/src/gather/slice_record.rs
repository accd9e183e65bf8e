//! Slices on rows of the trace, and spans without an end, which are slices of no known duration.

use super::request_moment::ids;
use sa_format::Phase;
use std::cmp::Reverse;
use trace_merge::events::PlacedEvent;
use trace_store::sorter::Record;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A span with a begin and an end, on a row of the trace. In the order of these, a slice comes before those that it contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SliceRecord {
    /// Slices of one row contain each other or lie behind each other.
    pub(crate) row: u64,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: Reverse<i64>,
    /// What it is counted as, by its number among the keys.
    pub(crate) key: u32,
    /// The CPU time that its thread took; negative if it was not recorded.
    pub(crate) cpu_ns: i64,
}

impl Record for SliceRecord {}

/// Bits for the number of a row within its thread. Threads have far fewer rows.
const BITS: u32 = 16;
/// The bit that only the rows of async spans have.
const ASYNC: u64 = 1 << 63;

/// Returns the row of a slice: a row of its thread, or for an async span the row of its category and id.
pub(crate) fn row(event: &PlacedEvent<'_>, process: usize) -> u64 {
    match event.phase {
        Phase::AsyncBegin => {
            let seed = event.id().unwrap_or(0) ^ (process as u64).rotate_left(32);
            xxh3_64_with_seed(event.category().as_bytes(), seed) | ASYNC
        }
        _ => (event.thread as u64) << BITS | event.row as u64,
    }
}

/// The thread of a row, by its number; `None` of an async span.
pub(crate) fn thread_of(row: u64) -> Option<usize> {
    match row & ASYNC {
        0 => usize::try_from(row >> BITS).ok(),
        _ => None,
    }
}

/// Maximum number of spans without an end that are kept; the others are only counted.
pub(crate) const MOST_OPEN: usize = 100_000;

/// A span that has no end.
#[derive(Clone, Debug)]
pub(crate) struct OpenSpan {
    pub(crate) process: usize,
    pub(crate) start_ns: i64,
    pub(crate) name: String,
    /// The step that it is of, as JSON.
    pub(crate) step: Option<String>,
    pub(crate) request_ids: Vec<String>,
}

impl OpenSpan {
    /// Returns the span of an event.
    pub(crate) fn of(event: &PlacedEvent<'_>, name: &str, process: usize) -> OpenSpan {
        let step = event.arg("step").or_else(|| event.arg("batch"));
        let text = |json: &[u8]| String::from_utf8_lossy(json).trim_matches('"').to_owned();
        OpenSpan {
            process,
            start_ns: event.ts_ns,
            name: name.to_owned(),
            step: step.map(text),
            request_ids: ids(event),
        }
    }
}
