//! Keys shared out, so that each worker does its part: keys are hashes, so shares are of about the same size.

/// Most shares: each has buffers of its own.
const MOST: usize = 16;

/// The keys that have the same first bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    number: u64,
    bits: u32,
}

/// The shares of so many workers, in the order of their keys: a power of two of them.
pub(super) fn shares(workers: usize) -> Vec<Share> {
    let bits = workers.clamp(1, MOST).next_power_of_two().ilog2();
    let share = |number| Share { number, bits };
    (0..1 << bits).map(share).collect()
}

impl Share {
    /// The share that has all keys.
    pub(super) const ALL: Share = Share { number: 0, bits: 0 };

    /// Which one of so many shares a key is in.
    #[inline]
    pub(super) fn of(key: u64, shares: usize) -> usize {
        let first = first_bits(key, shares.checked_ilog2().unwrap_or(0));
        usize::try_from(first).unwrap_or(0)
    }

    /// The first key that it may have.
    pub(super) fn first(self) -> u64 {
        let others = u64::BITS - self.bits;
        self.number.checked_shl(others).unwrap_or(0)
    }

    /// How many first bits its keys have in common.
    pub(super) fn bits(self) -> u32 {
        self.bits
    }

    pub(super) fn has(self, key: u64) -> bool {
        first_bits(key, self.bits) == self.number
    }
}

/// Shifted in two steps, for all bits at once are no shift.
#[inline]
fn first_bits(key: u64, bits: u32) -> u64 {
    key >> 1 >> (u64::BITS - 1 - bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_in_one_share() {
        let keys = [0, 1, u64::MAX, 1 << 63, (1 << 63) - 1, 0x3333 << 48];
        for (workers, expected) in [(0, 1), (1, 1), (2, 2), (3, 4), (16, 16), (99, 16)] {
            let shares = shares(workers);
            assert_eq!(shares.len(), expected);
            assert!(shares.iter().all(|share| share.has(share.first())));
            for key in keys {
                let having = shares.iter().filter(|share| share.has(key)).count();
                assert_eq!(having, 1, "{key} of {workers}");
                let share = shares[Share::of(key, shares.len())];
                assert!(share.has(key) && share.first() <= key, "{key} of {workers}");
            }
        }
    }
}
