//! Progress of a merge.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a running merge, which another thread may read.
///
/// A merge reads its inputs several times. Its progress is reported as a share of the inputs' length, so that it grows evenly.
#[derive(Debug, Default)]
pub struct Progress {
    input_bytes: AtomicU64,
    /// Bytes processed so far, in all passes together.
    done: AtomicU64,
    /// Bytes to process in all passes together.
    planned: AtomicU64,
    events: AtomicU64,
}

impl Progress {
    /// Returns the progress in bytes of input, and the length of the inputs. Both are 0 before the length is known, and equal at the end.
    pub fn bytes(&self) -> (u64, u64) {
        let input_bytes = self.input_bytes.load(Ordering::Relaxed);
        let planned = self.planned.load(Ordering::Relaxed).max(1);
        let done = self.done.load(Ordering::Relaxed).min(planned);
        let part = u128::from(input_bytes) * u128::from(done) / u128::from(planned);
        (u64::try_from(part).unwrap_or(input_bytes), input_bytes)
    }

    /// Returns the number of events found so far.
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// Starts a merge: resets the counters, and sets the length of the inputs and the estimated number of passes over them.
    pub fn expect(&self, input_bytes: u64, passes: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.events.store(0, Ordering::Relaxed);
        let planned = input_bytes.saturating_mul(passes);
        self.planned.store(planned, Ordering::Relaxed);
        self.input_bytes.store(input_bytes, Ordering::Relaxed);
    }

    /// Adds bytes to those still to be processed.
    pub fn expect_more(&self, bytes: u64) {
        self.planned.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Sets the number of bytes still to be processed, whatever was expected before.
    pub fn expect_rest(&self, bytes: u64) {
        let planned = self.done.load(Ordering::Relaxed).saturating_add(bytes);
        self.planned.store(planned, Ordering::Relaxed);
    }

    /// Restarts the count of events, because the inputs are read once more, in two passes.
    pub fn begin_again(&self) {
        self.events.store(0, Ordering::Relaxed);
        let input_bytes = self.input_bytes.load(Ordering::Relaxed);
        self.planned.fetch_add(2 * input_bytes, Ordering::Relaxed);
    }

    /// Returns the bytes processed so far in all passes together, and their number at the end.
    pub fn passed(&self) -> (u64, u64) {
        let [done, planned] =
            [&self.done, &self.planned].map(|count| count.load(Ordering::Relaxed));
        (done, planned)
    }

    /// Counts `bytes` of input that a pass has just processed, and `events` that it found in them.
    pub fn add(&self, bytes: u64, events: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
        self.events.fetch_add(events, Ordering::Relaxed);
    }
}
