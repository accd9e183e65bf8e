//! What both clocks of a host showed at a moment, and where in a row of such readings somebody set the wall clock.

use super::curve::{LIMIT_NS, clamp};
use sa_format::Anchor;

/// How fast a clock may gain or lose on true time, in parts per million.
pub(crate) const DRIFT_PPM: i64 = 100;
/// How fast the two clocks of a host may drift apart without anybody having set one, in parts per million.
const APART_PPM: i64 = 2 * DRIFT_PPM;
/// What readings are off at least.
pub(super) const SLACK_NS: i64 = 1_000;

/// A reading of both clocks in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Of the monotonic clock of the host.
    pub at_ns: i64,
    /// How far the wall clock is ahead of it.
    pub ahead_ns: i64,
    /// How far that may be off, in ns.
    pub uncertainty_ns: i64,
}

impl Reading {
    /// An anchor of a process whose monotonic clock is ahead of its host's.
    pub fn of(anchor: &Anchor, offset_ns: i64) -> Reading {
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

    /// The least and the most that the wall clock was ahead.
    pub(super) fn range(&self) -> (i64, i64) {
        let by = self.uncertainty_ns;
        let (low, high) = (self.ahead_ns.checked_sub(by), self.ahead_ns.checked_add(by));
        (low.unwrap_or(i64::MIN), high.unwrap_or(i64::MAX))
    }

    /// Whether another one says as much of this moment.
    pub(super) fn is_told_by(&self, other: &Reading) -> bool {
        let apart = apart_ns(self.at_ns.saturating_sub(other.at_ns).saturating_abs());
        other.uncertainty_ns.saturating_add(apart) < self.uncertainty_ns
    }
}

/// How far a clock may drift in so much time.
pub fn drift_ns(ns: i64) -> i64 {
    ns / (1_000_000 / DRIFT_PPM) + 1
}

/// How far the clocks of a host may drift apart in so much time.
fn apart_ns(ns: i64) -> i64 {
    ns / (1_000_000 / APART_PPM)
}

/// The readings between each two moments at which somebody set the wall clock. They must be in the order of time.
pub(super) fn pieces(readings: &[Reading]) -> impl Iterator<Item = &[Reading]> {
    let mut known: Option<(i64, i64)> = None;
    readings.chunk_by(move |one, next| {
        let (low, high) = known.unwrap_or_else(|| one.range());
        let apart = apart_ns(next.at_ns.saturating_sub(one.at_ns));
        let (low, high) = (low.saturating_sub(apart), high.saturating_add(apart));
        let (next_low, next_high) = next.range();
        let is_unset =
            next_low <= high.saturating_add(SLACK_NS) && next_high >= low.saturating_sub(SLACK_NS);
        let both = (low.max(next_low), high.min(next_high));
        known = (is_unset && both.0 <= both.1).then_some(both);
        is_unset
    })
}
