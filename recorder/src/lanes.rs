//! Virtual lanes: tids for spans that live across awaits or threads. As many as the peak concurrency, never reused while open.

use std::sync::atomic::{AtomicU32, Ordering};

/// Which lanes are taken.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    taken: Vec<bool>,
}

/// How many lanes have a name, for who must not wait for the lanes.
#[derive(Debug, Default)]
pub(crate) struct Named(AtomicU32);

impl Named {
    pub(crate) fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Notes a lane as named.
    pub(crate) fn add(&self, lane: u32) {
        self.0.fetch_max(lane + 1, Ordering::Relaxed);
    }
}

impl Lanes {
    /// Takes the lowest free lane; says whether it is used for the first time.
    pub(crate) fn take(&mut self) -> (u32, bool) {
        if let Some(free) = self.taken.iter().position(|taken| !taken) {
            self.taken[free] = true;
            return (u32::try_from(free).unwrap_or(0), false);
        }
        self.taken.push(true);
        (u32::try_from(self.taken.len() - 1).unwrap_or(0), true)
    }

    /// Gives a lane back.
    pub(crate) fn give_back(&mut self, lane: u32) {
        if let Some(taken) = self.taken.get_mut(lane as usize) {
            *taken = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_lane_is_taken() {
        let mut lanes = Lanes::default();
        assert_eq!(
            [lanes.take(), lanes.take(), lanes.take()],
            [(0, true), (1, true), (2, true)]
        );
        lanes.give_back(1);
        lanes.give_back(0);
        assert_eq!(
            [lanes.take(), lanes.take(), lanes.take()],
            [(0, false), (1, false), (3, true)]
        );
    }
}
