//! The slack of each pair of hosts over time, which the tightest arrows between them determine. The memory it needs does not depend on the number of arrows.

use super::solve::UNBOUNDED_NS;
use super::wall::drift_ns;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Maximum number of stored values of all pairs of hosts together.
const MAX_VALUES: usize = 1 << 19;
/// Minimum and maximum number of times.
const TIMES: std::ops::RangeInclusive<usize> = 8..=8192;
/// Minimum distance between two times.
const MIN_WIDTH_NS: i64 = 10_000_000;
/// Maximum number of pairs of hosts.
pub(super) const MAX_PAIRS: usize = 1 << 16;

/// Times at equal distances.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    start_ns: i64,
    pub(super) width_ns: i64,
    pub(super) times: usize,
    /// Number of clocks whose drift contributes to the error of one host relative to another one.
    drifts: i64,
}

impl Grid {
    /// Creates times from the first to the last ns. `series` is the number of hosts or pairs of hosts with a value at each time.
    pub(super) fn over((first_ns, last_ns): (i64, i64), series: usize, drifts: i64) -> Grid {
        let most = (MAX_VALUES / series.max(1)).clamp(*TIMES.start(), *TIMES.end());
        let len_ns = last_ns.saturating_sub(first_ns).max(0);
        let most_ns = i64::try_from(most - 1).unwrap_or(1);
        let width_ns = (len_ns / most_ns + 1).max(MIN_WIDTH_NS);
        Grid {
            start_ns: first_ns,
            width_ns,
            times: usize::try_from(len_ns / width_ns).map_or(most, |full| full + 2),
            drifts,
        }
    }

    pub(super) fn at_ns(&self, time: usize) -> i64 {
        let steps = i64::try_from(time).unwrap_or(0);
        self.start_ns
            .saturating_add(steps.saturating_mul(self.width_ns))
    }

    /// Returns the number of the nearest time.
    pub(super) fn find(&self, at_ns: i64) -> usize {
        let after = at_ns.saturating_sub(self.start_ns).max(0);
        let time = usize::try_from((after + self.width_ns / 2) / self.width_ns);
        time.map_or(0, |time| time.min(self.times - 1))
    }

    /// Returns how much the error of one host relative to another one may change within `ns`.
    pub(super) fn change_ns(&self, ns: i64) -> i64 {
        self.drifts.saturating_mul(drift_ns(ns))
    }

    /// Returns the distance of a time from the grid, or 0 if it is not outside.
    pub(super) fn beyond_ns(&self, at_ns: i64) -> i64 {
        let (first_ns, last_ns) = (self.start_ns, self.at_ns(self.times - 1));
        let (before, after) = (
            first_ns.saturating_sub(at_ns),
            at_ns.saturating_sub(last_ns),
        );
        before.max(after).max(0)
    }
}

/// Arrows from one host to another.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    /// Number of arrows.
    pub(super) arrows: u64,
    /// Number of arrows that are impossible if the anchors are right. They do not count for the slack.
    pub(super) impossible: u64,
    /// Shortest time that an arrow takes, near each time of the grid.
    pub(super) slack_ns: Vec<i64>,
}

impl Pair {
    /// Returns true if any arrow bounds the errors of the hosts.
    pub(super) fn is_bounded(&self) -> bool {
        self.slack_ns.iter().any(|slack| *slack < UNBOUNDED_NS)
    }
}

/// Arrows between all hosts.
#[derive(Debug)]
pub(super) struct Slacks {
    pub(super) grid: Grid,
    pub(super) pairs: BTreeMap<(usize, usize), Pair>,
}

impl Slacks {
    pub(super) fn new(grid: Grid) -> Slacks {
        Slacks {
            grid,
            pairs: BTreeMap::new(),
        }
    }

    /// Adds an arrow with times on the axis. Its end may be before its start by at most `allowed_ns`.
    pub(super) fn add(&mut self, (pair, times): ((usize, usize), (i64, i64)), allowed_ns: i64) {
        let (from_ns, to_ns) = times;
        let is_full = self.pairs.len() >= MAX_PAIRS;
        let pair = match self.pairs.entry(pair) {
            Entry::Occupied(pair) => pair.into_mut(),
            Entry::Vacant(_) if is_full => return,
            Entry::Vacant(entry) => entry.insert(Pair {
                arrows: 0,
                impossible: 0,
                slack_ns: vec![UNBOUNDED_NS; self.grid.times],
            }),
        };
        pair.arrows += 1;
        let takes_ns = to_ns.saturating_sub(from_ns);
        if takes_ns < allowed_ns.saturating_neg() {
            pair.impossible += 1;
            return;
        }
        let time = self.grid.find(to_ns);
        let at_ns = self.grid.at_ns(time);
        let grid = self.grid;
        let change_since = |ns: i64| grid.change_ns(ns.saturating_sub(at_ns).saturating_abs());
        let slack_ns = takes_ns
            .saturating_add(change_since(from_ns))
            .saturating_add(change_since(to_ns))
            .clamp(-UNBOUNDED_NS / 1024, UNBOUNDED_NS - 1);
        pair.slack_ns[time] = pair.slack_ns[time].min(slack_ns);
    }

    /// Returns true if the arrows that end near this time of the axis were not excluded.
    pub(super) fn is_bounded_at(&self, pair: (usize, usize), to_ns: i64) -> bool {
        let time = self.grid.find(to_ns);
        let pair = self.pairs.get(&pair);
        pair.is_some_and(|pair| pair.slack_ns[time] < UNBOUNDED_NS)
    }
}
