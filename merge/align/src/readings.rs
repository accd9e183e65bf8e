//! Readings of both clocks of a host, and the steps between them at which the wall clock was set.

use super::curve::{LIMIT_NS, clamp};
use sa_format::Anchor;

/// Maximum drift of a clock relative to the true time, in parts per million.
pub(crate) const DRIFT_PPM: i64 = 100;
/// Maximum drift between the two clocks of a host while neither is set, in parts per million.
const APART_PPM: i64 = 2 * DRIFT_PPM;
/// Minimum error of a reading.
pub(super) const SLACK_NS: i64 = 1_000;

/// A reading of both clocks in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Time of the host's monotonic clock.
    pub at_ns: i64,
    /// Time by which the wall clock was ahead of the monotonic clock.
    pub ahead_ns: i64,
    /// Maximum error of `ahead_ns`.
    pub uncertainty_ns: i64,
}

impl Reading {
    /// Converts an anchor of a process. The monotonic clock of the process is ahead of its host's by `offset_ns`.
    pub fn from_anchor(anchor: &Anchor, offset_ns: i64) -> Reading {
        let time = |ns: u64| i64::try_from(ns).map_or(LIMIT_NS, clamp);
        let at_ns = clamp(time(anchor.monotonic_ns).saturating_sub(clamp(offset_ns)));
        Reading {
            at_ns,
            ahead_ns: time(anchor.realtime_ns).saturating_sub(at_ns),
            uncertainty_ns: time(anchor.uncertainty_ns),
        }
    }

    pub(super) fn point(&self) -> (i64, i64) {
        (self.at_ns, self.ahead_ns)
    }

    /// Returns the minimum and the maximum time by which the wall clock was ahead.
    pub(super) fn range(&self) -> (i64, i64) {
        let by = self.uncertainty_ns;
        let (low, high) = (self.ahead_ns.checked_sub(by), self.ahead_ns.checked_add(by));
        (low.unwrap_or(i64::MIN), high.unwrap_or(i64::MAX))
    }

    /// Returns true if another reading determines this moment with less uncertainty.
    pub(super) fn is_implied_by(&self, other: &Reading) -> bool {
        let apart = apart_ns(self.at_ns.saturating_sub(other.at_ns).saturating_abs());
        other.uncertainty_ns.saturating_add(apart) < self.uncertainty_ns
    }
}

/// Returns the maximum drift of a clock within `ns`.
pub fn drift_ns(ns: i64) -> i64 {
    ns / (1_000_000 / DRIFT_PPM) + 1
}

/// Returns the maximum drift between the clocks of a host within `ns`.
fn apart_ns(ns: i64) -> i64 {
    ns / (1_000_000 / APART_PPM)
}

/// Splits readings at the steps of the wall clock. They must be sorted by time.
pub(super) fn split_at_steps(readings: &[Reading]) -> impl Iterator<Item = &[Reading]> {
    let mut range: Option<(i64, i64)> = None;
    readings.chunk_by(move |one, next| {
        let (low, high) = range.unwrap_or_else(|| one.range());
        let apart = apart_ns(next.at_ns.saturating_sub(one.at_ns));
        let (low, high) = (low.saturating_sub(apart), high.saturating_add(apart));
        let (next_low, next_high) = next.range();
        let is_continuous =
            next_low <= high.saturating_add(SLACK_NS) && next_high >= low.saturating_sub(SLACK_NS);
        let both = (low.max(next_low), high.min(next_high));
        range = (is_continuous && both.0 <= both.1).then_some(both);
        is_continuous
    })
}
