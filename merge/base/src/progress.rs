//! How far a merge is.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts what a merge has done; another thread may look meanwhile.
///
/// A merge goes over its inputs several times. What it has gone over is told as a part of the inputs' length, so that it grows evenly.
#[derive(Debug, Default)]
pub struct Progress {
    input_bytes: AtomicU64,
    /// Bytes gone over in all passes together, so far and at the end.
    done: AtomicU64,
    planned: AtomicU64,
    events: AtomicU64,
}

impl Progress {
    /// Bytes that are done and the length of the inputs, which is 0 before it is known; the same when all is done.
    pub fn bytes(&self) -> (u64, u64) {
        let input_bytes = self.input_bytes.load(Ordering::Relaxed);
        let planned = self.planned.load(Ordering::Relaxed).max(1);
        let done = self.done.load(Ordering::Relaxed).min(planned);
        let part = u128::from(input_bytes) * u128::from(done) / u128::from(planned);
        (u64::try_from(part).unwrap_or(input_bytes), input_bytes)
    }

    /// Events found so far.
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// A merge begins: the inputs are so long, and about to be gone over so often. What an earlier merge has counted is forgotten.
    pub fn expect(&self, input_bytes: u64, passes: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.events.store(0, Ordering::Relaxed);
        let planned = input_bytes.saturating_mul(passes);
        self.planned.store(planned, Ordering::Relaxed);
        self.input_bytes.store(input_bytes, Ordering::Relaxed);
    }

    /// It is so much more than was expected.
    pub fn expect_more(&self, bytes: u64) {
        self.planned.fetch_add(bytes, Ordering::Relaxed);
    }

    /// From here on it is so many bytes, whatever was expected.
    pub fn expect_rest(&self, bytes: u64) {
        let planned = self.done.load(Ordering::Relaxed).saturating_add(bytes);
        self.planned.store(planned, Ordering::Relaxed);
    }

    /// What was found so far is found once more.
    pub fn begin_again(&self) {
        self.events.store(0, Ordering::Relaxed);
        let input_bytes = self.input_bytes.load(Ordering::Relaxed);
        self.planned.fetch_add(2 * input_bytes, Ordering::Relaxed);
    }

    /// Bytes gone over in all passes, so far and at the end.
    pub fn passed(&self) -> (u64, u64) {
        let [done, planned] =
            [&self.done, &self.planned].map(|count| count.load(Ordering::Relaxed));
        (done, planned)
    }

    /// One pass is over this many bytes, in which it found so many new events.
    pub fn add(&self, bytes: u64, events: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
        self.events.fetch_add(events, Ordering::Relaxed);
    }
}
