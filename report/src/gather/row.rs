//! The row of the trace that a slice lies on.

use sa_format::Phase;
use trace_merge::events::PlacedEvent;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Rows beside a thread are far fewer.
const BITS: u32 = 16;
/// Tells the rows of async spans from those of threads.
const ASYNC: u64 = 1 << 63;

/// The row of a slice: that of its thread, or, of an async one, that of its id.
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
