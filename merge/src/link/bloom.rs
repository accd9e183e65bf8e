//! Which ids there are, as far as one bit for many of them can say.

use std::sync::atomic::{AtomicU64, Ordering};

/// 1 MiB.
const WORDS: usize = 1 << 17;

/// A bit for each key that was seen, which others share.
pub(super) struct KnownKeys {
    words: Box<[AtomicU64]>,
}

impl KnownKeys {
    pub(super) fn new() -> KnownKeys {
        KnownKeys {
            words: (0..WORDS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    #[inline]
    fn place(&self, key: u64) -> (&AtomicU64, u64) {
        let word = usize::try_from(key >> 40).unwrap_or(0) % WORDS;
        (&self.words[word], 1 << (key >> 58))
    }

    #[inline]
    pub(super) fn add(&self, key: u64) {
        let (word, bit) = self.place(key);
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Whether it may be there. It is not, if this says so.
    #[inline]
    pub(super) fn may_have(&self, key: u64) -> bool {
        let (word, bit) = self.place(key);
        word.load(Ordering::Relaxed) & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xxhash_rust::xxh3::xxh3_64;

    #[test]
    fn keys_that_are_there_are_known_and_few_others() {
        let known = KnownKeys::new();
        let key = |number: u64| xxh3_64(&number.to_le_bytes());
        (0..100_000).for_each(|number| known.add(key(number)));
        assert!((0..100_000).all(|number| known.may_have(key(number))));
        let wrong = (100_000..200_000).filter(|number| known.may_have(key(*number)));
        let wrong = wrong.count();
        assert!((100..5_000).contains(&wrong), "{wrong} of 100,000");
    }
}
