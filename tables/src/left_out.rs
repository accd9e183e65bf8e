//! What the tables lack because there is no room for it.

use std::ops::AddAssign;

/// Counts of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// Slices in which no other lies, because too many are open.
    pub(crate) spans_too_deep: u64,
    /// Ends of arrows that wait for a slice, of which there are too many.
    pub(crate) flow_ends: u64,
}

impl AddAssign for LeftOut {
    fn add_assign(&mut self, other: LeftOut) {
        self.spans_too_deep += other.spans_too_deep;
        self.flow_ends += other.flow_ends;
    }
}
