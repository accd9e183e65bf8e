//! Repeatable random choices for tests. Tests print the seed, and `SA_PROFILE_SEED` sets it.

use crate::host_support::full;
use std::time::{Duration, UNIX_EPOCH};

/// A source of random numbers (splitmix64).
#[derive(Clone, Debug)]
pub struct Chance {
    /// Seed that the generator started from.
    pub seed: u64,
    state: u64,
}

impl Chance {
    /// Creates a generator seeded from `SA_PROFILE_SEED`, or from the clock if that is unset.
    pub fn new() -> Self {
        let given = std::env::var("SA_PROFILE_SEED")
            .ok()
            .and_then(|text| text.parse().ok());
        let clock = || {
            let since = UNIX_EPOCH.elapsed();
            since.map_or(1, |since| u64::from(since.subsec_nanos()))
        };
        Chance::from_seed(given.unwrap_or_else(clock))
    }

    /// Creates a generator with this seed.
    pub fn from_seed(seed: u64) -> Self {
        Chance { seed, state: seed }
    }

    /// Returns the next number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, which must not be 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX);
        usize::try_from(self.next_u64() % end).unwrap_or(0)
    }

    /// Returns a pause of up to `most`. On a logarithmic scale, short pauses are as likely as long ones.
    pub fn pause(&mut self, most: Duration) -> Duration {
        let halvings = u32::try_from(self.below(10)).unwrap_or(0);
        let part = u32::try_from(self.below(1000)).unwrap_or(0);
        most / 2_u32.pow(halvings) / 1000 * part
    }
}

impl Default for Chance {
    fn default() -> Self {
        Chance::new()
    }
}

/// Returns the number of repetitions: `usual`, or `all` with `SA_PROFILE_FULL=1`.
pub fn rounds(usual: usize, all: usize) -> usize {
    if full() { all } else { usual }
}
