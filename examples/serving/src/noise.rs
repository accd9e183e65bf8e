//! Seeded pseudo-random numbers for prompts and tokens.

/// A table of pseudo-random numbers that can be read at any index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    /// Returns a new table that depends on this one and on `part`.
    pub(crate) fn part(self, part: u64) -> Noise {
        Noise(mix(self.0 ^ mix(part)))
    }

    /// Returns an integer in `0..bound` for `index`, or 0 if the bound is 0.
    pub(crate) fn below(self, index: u64, bound: usize) -> usize {
        let bits = mix(self.0.wrapping_add(index)) >> 11;
        let bits = usize::try_from(bits).unwrap_or(0);
        bits.checked_rem(bound).unwrap_or(0)
    }
}

/// Mixes bits with the finaliser of splitmix64.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
