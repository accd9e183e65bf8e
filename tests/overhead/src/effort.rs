//! The effort of a run.

/// The number of rounds, events and processes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// For the page: a quarter of an hour.
    Full,
    /// To check the program: some minutes.
    Quick,
    /// For the tests: next to nothing.
    Tiny,
}

impl Effort {
    /// Returns the number that belongs to this effort.
    pub(crate) fn select(self, full: u64, quick: u64, tiny: u64) -> u64 {
        match self {
            Effort::Full => full,
            Effort::Quick => quick,
            Effort::Tiny => tiny,
        }
    }

    /// Returns the number of turns of each case, with all other cases in between.
    pub(crate) fn passes(self) -> u64 {
        self.select(5, 1, 1)
    }
}
