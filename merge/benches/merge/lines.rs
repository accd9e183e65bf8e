//! Helpers of the generators: seeded random numbers, times in µs, and counts of events.

use std::collections::BTreeMap;
use std::fmt;

/// A seeded generator (xorshift), so that every machine measures the same bytes.
pub(crate) struct Random(u64);

impl Random {
    /// Creates the generator for file `index`.
    pub(crate) fn new(index: u32) -> Self {
        Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(u64::from(index) + 1))
    }

    /// Returns 64 random bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Returns an index below `end`.
    pub(crate) fn index(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).unwrap_or(0)
    }
}

/// Nanoseconds, shown as µs with three decimals.
pub(crate) struct Us(pub(crate) u64);

impl fmt::Display for Us {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// Number of events by phase.
pub(crate) type Counts = BTreeMap<char, u64>;
