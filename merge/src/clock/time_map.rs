//! Mapping of a recording's own times to the axis.

use crate::align::Curve;
use std::sync::Arc;

/// Maps the own times of one recording to the axis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeMap {
    /// Curve to apply first, if a shift is not enough.
    pub(crate) warp: Option<Arc<Curve>>,
    /// Time in ns to add after that.
    pub(crate) shift_ns: i64,
}

impl TimeMap {
    pub(crate) fn shift(shift_ns: i64) -> TimeMap {
        let warp = None;
        TimeMap { warp, shift_ns }
    }

    pub(crate) fn at(&self, own_ns: i64) -> i64 {
        let warped = self.warp.as_ref().map_or(own_ns, |warp| warp.at(own_ns));
        warped.saturating_add(self.shift_ns)
    }

    /// Returns the recording's own time for a time of the axis, to within 1 ns.
    pub(crate) fn back(&self, axis_ns: i64) -> i64 {
        let warped = axis_ns.saturating_sub(self.shift_ns);
        self.warp.as_ref().map_or(warped, |warp| warp.back(warped))
    }
}
