//! The time range and the host pairs of all arrows. They determine the times and the number of bounds to store.

use super::curve::Curve;
use super::ends::{Arrow, End, each_arrow};
use super::slack::MAX_PAIRS;
use std::collections::BTreeSet;

/// Number of first times, and of last times, that are stored for each host.
const KEPT: usize = 8;
/// A time is wrong if its distance from the others is more than this multiple of their range.
const FAR: u64 = 4;

#[derive(Debug)]
pub(super) struct ArrowExtents {
    /// First and last times of each host's arrows on its own clock.
    times: Vec<(Vec<i64>, Vec<i64>)>,
    pub(super) pairs: BTreeSet<(usize, usize)>,
}

impl ArrowExtents {
    pub(super) fn new(ends: &[End], hosts: usize) -> ArrowExtents {
        let mut extents = ArrowExtents {
            times: vec![(Vec::new(), Vec::new()); hosts],
            pairs: BTreeSet::new(),
        };
        each_arrow(ends, |arrow| extents.add(&arrow));
        extents
    }

    fn add(&mut self, arrow: &Arrow) {
        for (host, at_ns) in [arrow.from, arrow.to] {
            let (first, last) = &mut self.times[host];
            insert_sorted(first, at_ns, |one, other| one < other);
            insert_sorted(last, at_ns, |one, other| one > other);
        }
        if self.pairs.len() < MAX_PAIRS {
            self.pairs.insert(arrow.pair());
        }
    }

    pub(super) fn has_arrows(&self, host: usize) -> bool {
        !self.times[host].0.is_empty()
    }

    /// Returns the first and the last time of all arrows on the axis, except for single times that are far from all others.
    pub(super) fn range_ns(&self, drafts: &[Curve]) -> Option<(i64, i64)> {
        let hosts = self.times.iter().zip(drafts);
        let ranges = hosts.filter_map(|((first, last), draft)| {
            let (first_ns, last_ns) = plausible_range(first, last)?;
            Some((draft.at(first_ns), draft.at(last_ns)))
        });
        ranges.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    }
}

/// Inserts a time into a sorted list of the first times.
fn insert_sorted(times: &mut Vec<i64>, at_ns: i64, is_before: impl Fn(i64, i64) -> bool) {
    let at = times.partition_point(|one| is_before(*one, at_ns));
    if at < KEPT && times.get(at) != Some(&at_ns) {
        times.insert(at, at_ns);
        times.truncate(KEPT);
    }
}

/// Returns the first and the last time that are not far from the next one, relative to the range between the innermost stored times.
fn plausible_range(first: &[i64], last: &[i64]) -> Option<(i64, i64)> {
    let core_ns = last.last()?.saturating_sub(*first.last()?);
    let is_far =
        |pair: &&[i64]| core_ns > 0 && pair[0].abs_diff(pair[1]) / FAR > core_ns.unsigned_abs();
    let end = |times: &[i64]| {
        times
            .get(times.windows(2).take_while(is_far).count())
            .copied()
    };
    Some((end(first)?, end(last)?))
}
