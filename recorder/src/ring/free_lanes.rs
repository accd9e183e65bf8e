//! Set of free lanes: one bit for each, so that the lowest one is found by counting zeros.

use std::collections::TryReserveError;

/// The free lanes of a process.
#[derive(Debug, Default)]
pub(crate) struct FreeLanes {
    words: Vec<u64>,
    /// Index before which every word is zero.
    first: usize,
}

impl FreeLanes {
    /// Reserves memory for a new lane in the set, so that [`FreeLanes::release`] needs none.
    pub(crate) fn reserve(&mut self, lane: u32) -> Result<(), TryReserveError> {
        let missing = (word_and_bit(lane).0 + 1).saturating_sub(self.words.len());
        self.words.try_reserve(missing)?;
        self.words.resize(self.words.len() + missing, 0);
        Ok(())
    }

    /// Returns the lowest free lane for which `is_vacant` returns true, and marks it as used.
    /// Returns `None` if there is no such lane.
    #[inline(always)]
    pub(crate) fn allocate(&mut self, is_vacant: impl Fn(u32) -> bool) -> Option<u32> {
        let mut at = self.first;
        loop {
            let word = self.words.get_mut(at)?;
            let mut left = *word;
            while left != 0 {
                let lane = u32::try_from(at * 64).ok()? + left.trailing_zeros();
                if is_vacant(lane) {
                    *word &= !word_and_bit(lane).1;
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

    /// Marks a lane as free. [`FreeLanes::reserve`] was called for it when it was created.
    #[inline]
    pub(crate) fn release(&mut self, lane: u32) {
        let (at, bit) = word_and_bit(lane);
        if let Some(word) = self.words.get_mut(at) {
            *word |= bit;
            self.first = self.first.min(at);
        }
    }
}

/// Returns the index of the word that contains a lane's bit, and a mask with only that bit set.
#[inline(always)]
const fn word_and_bit(lane: u32) -> (usize, u64) {
    (lane as usize / 64, 1 << (lane % 64))
}
