//! Which lanes are free: a bit for each, so that the lowest one is found by counting zeros.

use std::collections::TryReserveError;

/// The free lanes of a process.
#[derive(Debug, Default)]
pub(crate) struct FreeLanes {
    words: Vec<u64>,
    /// Every word before it is zero.
    first: usize,
}

impl FreeLanes {
    /// Makes room for a lane, so that to give it back needs no memory.
    pub(crate) fn reserve(&mut self, lane: u32) -> Result<(), TryReserveError> {
        let missing = (place(lane).0 + 1).saturating_sub(self.words.len());
        self.words.try_reserve(missing)?;
        self.words.resize(self.words.len() + missing, 0);
        Ok(())
    }

    /// Takes the lowest free lane that `is_vacant`.
    #[inline(always)]
    pub(crate) fn take(&mut self, is_vacant: impl Fn(u32) -> bool) -> Option<u32> {
        let mut at = self.first;
        loop {
            let word = self.words.get_mut(at)?;
            let mut left = *word;
            while left != 0 {
                let lane = u32::try_from(at * 64).ok()? + left.trailing_zeros();
                if is_vacant(lane) {
                    *word &= !place(lane).1;
                    return Some(lane);
                }
                left &= left - 1;
            }
            if *word == 0 && at == self.first {
                self.first += 1;
            }
            at += 1;
        }
    }

    /// Gives a lane back that there is room for.
    #[inline]
    pub(crate) fn give_back(&mut self, lane: u32) {
        let (at, bit) = place(lane);
        if let Some(word) = self.words.get_mut(at) {
            *word |= bit;
            self.first = self.first.min(at);
        }
    }
}

/// The word of a lane and its bit in it.
#[inline(always)]
const fn place(lane: u32) -> (usize, u64) {
    (lane as usize / 64, 1 << (lane % 64))
}
