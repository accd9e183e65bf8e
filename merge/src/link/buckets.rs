//! Where a key stands among sorted keys: keys are hashes, spread evenly, so each tells nearly where it is.

use std::ops::Range;

/// Keys of a bucket, and most bits of a key that tell its bucket, those that are the same in all included: where buckets begin has to stay in a processor's
/// cache.
const KEYS: u64 = 16;
const MOST_BITS: u32 = 17;

/// Where the keys of each bucket begin: of those that are the same in the bits that tell it.
#[derive(Debug)]
pub(super) struct Buckets {
    /// How many keys are in the bucket before; once it is finished, where the bucket begins. Last, where all end.
    starts: Vec<usize>,
    /// How many bits are the same in all keys, and how many behind them tell the bucket.
    skipped: u32,
    bits: u32,
}

impl Default for Buckets {
    fn default() -> Self {
        Buckets::new(0, 0)
    }
}

impl Buckets {
    /// Those for at most about so many keys, of which the first `skipped` bits are the same.
    pub(super) fn new(keys: u64, skipped: u32) -> Buckets {
        let bits = (keys / KEYS).checked_ilog2().unwrap_or(0);
        // At least one bit: a shift by all 64 is none.
        let bits = bits.clamp(1, MOST_BITS.saturating_sub(skipped).max(1));
        Buckets {
            starts: vec![0; (1 << bits) + 1],
            skipped,
            bits,
        }
    }

    /// Counts a key.
    pub(super) fn count(&mut self, key: u64) {
        let bucket = self.bucket(key);
        self.starts[bucket + 1] += 1;
    }

    /// Ends the counting.
    pub(super) fn finish(&mut self) {
        for bucket in 1..self.starts.len() {
            self.starts[bucket] += self.starts[bucket - 1];
        }
    }

    #[inline]
    fn bucket(&self, key: u64) -> usize {
        usize::try_from((key << self.skipped) >> (u64::BITS - self.bits)).unwrap_or(0)
    }

    /// Where a key can be, and about where it is; `None` if there is none that begins like it.
    #[inline]
    pub(super) fn place(&self, key: u64) -> Option<(Range<usize>, usize)> {
        let bucket = self.bucket(key);
        let range = *self.starts.get(bucket)?..*self.starts.get(bucket + 1)?;
        if range.is_empty() {
            return None;
        }
        let within = u128::from(key << self.skipped << self.bits) * range.len() as u128;
        let within = usize::try_from(within >> u64::BITS).unwrap_or(0);
        let guess = range.start + within;
        Some((range, guess))
    }
}

/// So many places beside the guess are looked at one by one: nearly always it is near, and a binary search of all would wait for memory at each step.
const NEAR: usize = 32;

/// The first place in a range of which `is_before` is not true, as it is of none behind it; the range's end if there is none.
#[inline]
pub(super) fn first_behind(
    range: Range<usize>,
    guess: usize,
    is_before: impl Fn(usize) -> bool,
) -> usize {
    let near = guess.saturating_sub(NEAR).max(range.start)..(guess + NEAR).min(range.end);
    let mut at = guess;
    while at < near.end && is_before(at) {
        at += 1;
    }
    while at > near.start && !is_before(at - 1) {
        at -= 1;
    }
    let is_far = at == near.end && at < range.end || at == near.start && at > range.start;
    if is_far { far(range, is_before) } else { at }
}

/// The same for keys that are not spread evenly, as somebody may have chosen them.
#[cold]
fn far(mut range: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    while !range.is_empty() {
        let middle = range.start.midpoint(range.end);
        if is_before(middle) {
            range.start = middle + 1;
        } else {
            range.end = middle;
        }
    }
    range.start
}

#[cfg(test)]
mod tests {
    use super::*;
    use xxhash_rust::xxh3::xxh3_64;

    #[test]
    fn keys_stand_about_where_they_are_looked_for() {
        for (count, skipped) in [(1, 0), (5, 1), (1_000, 3), (100_000, 0)] {
            let key = |number: u64| xxh3_64(&number.to_le_bytes()) >> skipped;
            let mut keys: Vec<u64> = (0..count).map(key).collect();
            keys.sort_unstable();
            let mut buckets = Buckets::new(count, skipped);
            keys.iter().for_each(|key| buckets.count(*key));
            buckets.finish();
            for (at, key) in keys.iter().enumerate() {
                let (range, guess) = buckets.place(*key).unwrap();
                assert!(
                    range.contains(&at) && range.contains(&guess),
                    "{at} of {count}"
                );
                assert!(guess.abs_diff(at) < 20, "{at} of {count}: {guess}");
                assert_eq!(first_behind(range, guess, |at| keys[at] < *key), at);
            }
        }
        assert_eq!(Buckets::default().place(7), None);
    }

    #[test]
    fn a_place_is_found_wherever_the_guess_is() {
        for (start, end) in [(0, 0), (0_usize, 1), (5, 9), (3, 500)] {
            for first in [start, start + 1, start.midpoint(end), end].map(|first| first.min(end)) {
                for guess in start..end.max(start + 1) {
                    let found = first_behind(start..end, guess, |at| {
                        assert!((start..end).contains(&at), "{at} of {start}..{end}");
                        at < first
                    });
                    assert_eq!(found, first, "{start}..{end} from {guess}");
                }
            }
        }
    }
}
