//! How the own times of one recording become those of the axis.

use crate::align::Curve;
use std::sync::Arc;

/// How the own times of one recording become those of the axis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeMap {
    /// Where it is not always the same.
    pub(crate) warp: Option<Arc<Curve>>,
    /// What is added then.
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

    /// Which own time it is, to a ns.
    pub(crate) fn back(&self, axis_ns: i64) -> i64 {
        let warped = axis_ns.saturating_sub(self.shift_ns);
        self.warp.as_ref().map_or(warped, |warp| warp.back(warped))
    }
}
