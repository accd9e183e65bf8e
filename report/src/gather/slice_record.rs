//! Slices on the tracks of a trace, and spans without an end.

use super::request_moment::ids;
use sa_format::Phase;
use std::cmp::Reverse;
use trace_merge::events::PlacedEvent;
use trace_store::sorter::Record;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A span with a start and an end, on a track of the trace. Sorted, a slice comes before the slices inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SliceRecord {
    /// Track of the slice. Slices on one track contain each other or follow each other.
    pub(crate) track: u64,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: Reverse<i64>,
    /// Number of the key under which the slice is counted.
    pub(crate) key: u32,
    /// CPU time of the slice on its thread in ns. It is negative if it was not recorded.
    pub(crate) cpu_ns: i64,
}

impl Record for SliceRecord {}

/// Number of bits for the number of a track within its thread. Threads have far fewer tracks.
const BITS: u32 = 16;
/// Bit that is set only for tracks of async spans.
const ASYNC: u64 = 1 << 63;

/// Returns the id of the track that a span is on. An async span is on the track of its process, category and id. Any
/// other span is on a track of its thread.
pub(crate) fn track_id(event: &PlacedEvent<'_>, process: usize) -> u64 {
    match event.phase {
        Phase::AsyncBegin => {
            let seed = event.id().unwrap_or(0) ^ (process as u64).rotate_left(32);
            xxh3_64_with_seed(event.category().as_bytes(), seed) | ASYNC
        }
        _ => (event.thread as u64) << BITS | event.track as u64,
    }
}

/// Returns the index of the thread that a track id belongs to, or `None` for a track of async spans.
pub(crate) fn thread_of(track: u64) -> Option<usize> {
    match track & ASYNC {
        0 => usize::try_from(track >> BITS).ok(),
        _ => None,
    }
}

/// Maximum number of spans without an end that are stored. Further ones are only counted.
pub(crate) const MOST_OPEN: usize = 100_000;

/// A span without an end.
#[derive(Clone, Debug)]
pub(crate) struct OpenSpan {
    pub(crate) process: usize,
    pub(crate) start_ns: i64,
    pub(crate) name: String,
    /// Number or name of its step, as JSON without quotes.
    pub(crate) step: Option<String>,
    pub(crate) request_ids: Vec<String>,
}

impl OpenSpan {
    /// Creates the record of a span without an end from its event.
    pub(crate) fn from_event(event: &PlacedEvent<'_>, name: &str, process: usize) -> OpenSpan {
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
