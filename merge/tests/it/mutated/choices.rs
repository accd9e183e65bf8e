//! Where a recipe takes its choices from: a seed, or the bytes of a fuzzer.

/// Choices that always come the same way.
pub(crate) struct Choices<'a> {
    bytes: &'a [u8],
    state: u64,
}

impl<'a> Choices<'a> {
    /// Any number of choices from a seed.
    pub(crate) fn seeded(seed: u64) -> Choices<'static> {
        Choices {
            bytes: &[],
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    /// A choice for each two bytes; behind them the same ones follow always.
    #[allow(dead_code, reason = "for the fuzz target, which shares this file")]
    pub(crate) fn of(bytes: &'a [u8]) -> Choices<'a> {
        Choices { bytes, state: 1 }
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        if let Some((choice, rest)) = self.bytes.split_first_chunk() {
            self.bytes = rest;
            return usize::from(u16::from_le_bytes(*choice)) % bound.max(1);
        }
        // xorshift64*
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let mixed = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(mixed).unwrap_or(0) % bound.max(1)
    }

    /// True once in `times`.
    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these.
    pub(crate) fn of_these<'t, T>(&mut self, these: &'t [T]) -> &'t T {
        &these[self.below(these.len())]
    }
}
