//! Seeded numbers that look random: prompts and tokens come from them.

/// A table of numbers that can be read at any place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    /// The table for part `part` of this one.
    pub(crate) fn part(self, part: u64) -> Noise {
        Noise(mix(self.0 ^ mix(part)))
    }

    /// A whole number in `0..bound` for `index`; 0 if the bound is 0.
    pub(crate) fn below(self, index: u64, bound: usize) -> usize {
        let bits = mix(self.0.wrapping_add(index)) >> 11;
        let bits = usize::try_from(bits).unwrap_or(0);
        bits.checked_rem(bound).unwrap_or(0)
    }
}

/// The finaliser of splitmix64.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
