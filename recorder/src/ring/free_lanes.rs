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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_vacant_lane_is_taken() {
        let mut free = FreeLanes::default();
        assert_eq!(free.take(|_| true), None);
        for lane in [200, 3, 64, 63] {
            free.reserve(lane).unwrap();
            free.give_back(lane);
        }
        assert_eq!(free.take(|lane| lane > 3), Some(63));
        assert_eq!(free.take(|lane| lane > 100), Some(200));
        assert_eq!(free.take(|_| false), None);
        let all = [(); 3].map(|()| free.take(|_| true));
        assert_eq!(all, [Some(3), Some(64), None]);
        free.give_back(64);
        free.give_back(0);
        let all = [(); 3].map(|()| free.take(|_| true));
        assert_eq!(all, [Some(0), Some(64), None]);
    }
}
