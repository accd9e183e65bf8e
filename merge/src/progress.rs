//! How far a merge is.

use std::sync::atomic::{AtomicU64, Ordering};

/// How often a merge goes over its inputs: blocks are verified, lines are indexed, lines are copied.
const PASSES: u64 = 3;

/// Counts what a merge has done; another thread may look meanwhile.
#[derive(Debug, Default)]
pub struct Progress {
    /// Of all passes together.
    total_bytes: AtomicU64,
    done_bytes: AtomicU64,
    events: AtomicU64,
}

impl Progress {
    /// Length of the inputs in bytes; 0 before it is known.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes.load(Ordering::Relaxed) / PASSES
    }

    /// Bytes that are done, all passes counted: equal to the total at the end.
    pub fn done_bytes(&self) -> u64 {
        let done = self.done_bytes.load(Ordering::Relaxed) / PASSES;
        done.min(self.total_bytes())
    }

    /// Events found so far.
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    pub(crate) fn expect(&self, input_bytes: u64) {
        let total = input_bytes.saturating_mul(PASSES);
        self.total_bytes.store(total, Ordering::Relaxed);
    }

    /// One pass is over this many bytes, in which it found so many new events.
    pub(crate) fn add(&self, bytes: u64, events: u64) {
        self.done_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.events.fetch_add(events, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_passes_make_the_whole() {
        let progress = Progress::default();
        assert_eq!((progress.done_bytes(), progress.total_bytes()), (0, 0));
        progress.expect(100);
        progress.add(100, 0);
        progress.add(100, 7);
        assert_eq!((progress.done_bytes(), progress.total_bytes()), (66, 100));
        progress.add(101, 0);
        assert_eq!((progress.done_bytes(), progress.events()), (100, 7));
    }
}
