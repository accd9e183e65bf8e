//! What both generators need: seeded numbers, times in µs, and a count of what was written.

use std::collections::BTreeMap;
use std::fmt;

/// A seeded generator (xorshift), so that every machine measures the same bytes.
pub(crate) struct Random(u64);

impl Random {
    /// Makes the generator of file `index`.
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

    /// Returns one of `words`.
    pub(crate) fn word<'a>(&mut self, words: &[&'a str]) -> &'a str {
        let index = usize::try_from(self.below(words.len() as u64)).unwrap_or(0);
        words[index]
    }
}

/// Nanoseconds, shown as µs with three decimals.
pub(crate) struct Us(pub(crate) u64);

impl fmt::Display for Us {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// Events written, by phase.
#[derive(Default)]
pub(crate) struct Counts(pub(crate) BTreeMap<char, u64>);

impl Counts {
    /// Counts one event.
    pub(crate) fn add(&mut self, phase: char) {
        *self.0.entry(phase).or_default() += 1;
    }

    /// Adds another file's counts.
    pub(crate) fn join(&mut self, other: Counts) {
        for (phase, count) in other.0 {
            *self.0.entry(phase).or_default() += count;
        }
    }
}
