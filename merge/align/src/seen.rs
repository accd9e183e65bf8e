//! When the hosts that arrows lead from and to have any, and how many pairs of them there are: over so much time, and for so many, bounds are kept.

use super::curve::Curve;
use super::ends::{Arrow, End, each_arrow};
use super::slack::PAIRS;
use std::collections::BTreeSet;

/// The first times, and the last ones, that are kept of a host.
const KEPT: usize = 8;
/// A time that is further from the others than so often what is between them is a wrong one.
const FAR: u64 = 4;

#[derive(Debug)]
pub(super) struct Seen {
    /// The first and the last times of each host's arrows, by its own clock.
    times: Vec<(Vec<i64>, Vec<i64>)>,
    pub(super) pairs: BTreeSet<(usize, usize)>,
}

impl Seen {
    pub(super) fn of(ends: &[End], hosts: usize) -> Seen {
        let mut seen = Seen {
            times: vec![(Vec::new(), Vec::new()); hosts],
            pairs: BTreeSet::new(),
        };
        each_arrow(ends, |arrow| seen.add(&arrow));
        seen
    }

    fn add(&mut self, arrow: &Arrow) {
        for (host, at_ns) in [arrow.from, arrow.to] {
            let (first, last) = &mut self.times[host];
            keep(first, at_ns, |one, other| one < other);
            keep(last, at_ns, |one, other| one > other);
        }
        if self.pairs.len() < PAIRS {
            self.pairs.insert(arrow.pair());
        }
    }

    pub(super) fn has_arrows(&self, host: usize) -> bool {
        !self.times[host].0.is_empty()
    }

    /// From the first to the last time on the axis at which any host has arrows, but for single times that are far from all others.
    pub(super) fn over_ns(&self, drafts: &[Curve]) -> Option<(i64, i64)> {
        let hosts = self.times.iter().zip(drafts);
        let ranges = hosts.filter_map(|((first, last), draft)| {
            let (first_ns, last_ns) = usual(first, last)?;
            Some((draft.at(first_ns), draft.at(last_ns)))
        });
        ranges.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    }
}

/// Keeps a time among some that come before all others.
fn keep(times: &mut Vec<i64>, at_ns: i64, is_before: impl Fn(i64, i64) -> bool) {
    let place = times.partition_point(|one| is_before(*one, at_ns));
    if place < KEPT && times.get(place) != Some(&at_ns) {
        times.insert(place, at_ns);
        times.truncate(KEPT);
    }
}

/// The first and the last time of which the next one is not far, measured by what lies between the last ones of those that are kept.
fn usual(first: &[i64], last: &[i64]) -> Option<(i64, i64)> {
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
