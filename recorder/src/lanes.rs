//! Virtual lanes: tids for spans that live across awaits or threads. As many as the peak concurrency, never reused while open.

/// Which lanes are taken.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    taken: Vec<bool>,
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

    /// How many lanes there are.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.taken.len()).unwrap_or(0)
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
