//! How much room the tightest arrows between each two hosts leave, over time. However many arrows there are, so much is kept of them and no more.

use super::solve::OPEN_NS;
use super::wall::drift_ns;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Times at which the room between any two hosts is known, all together.
const ROOMS: usize = 1 << 19;
/// Most times, and fewest.
const TIMES: std::ops::RangeInclusive<usize> = 8..=8192;
/// No two times are closer.
const WIDTH_NS: i64 = 10_000_000;
/// Most pairs of hosts.
pub(super) const PAIRS: usize = 1 << 16;

/// Times that are all as far apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    start_ns: i64,
    pub(super) width_ns: i64,
    pub(super) times: usize,
    /// How many clocks' drifts are in the error of one host relative to another one.
    drifts: i64,
}

impl Grid {
    /// Times from the first to the last ns, for so many pairs of hosts or hosts.
    pub(super) fn over((first_ns, last_ns): (i64, i64), rows: usize, drifts: i64) -> Grid {
        let most = (ROOMS / rows.max(1)).clamp(*TIMES.start(), *TIMES.end());
        let len_ns = last_ns.saturating_sub(first_ns).max(0);
        let most_ns = i64::try_from(most - 1).unwrap_or(1);
        let width_ns = (len_ns / most_ns + 1).max(WIDTH_NS);
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

    /// The time that is next to this one.
    pub(super) fn find(&self, at_ns: i64) -> usize {
        let after = at_ns.saturating_sub(self.start_ns).max(0);
        let time = usize::try_from((after + self.width_ns / 2) / self.width_ns);
        time.map_or(0, |time| time.min(self.times - 1))
    }

    /// How much the error of a host, relative to another one, may change in so much time.
    pub(super) fn change_ns(&self, ns: i64) -> i64 {
        self.drifts.saturating_mul(drift_ns(ns))
    }

    /// How far a time is before the first or behind the last one.
    pub(super) fn beyond_ns(&self, at_ns: i64) -> i64 {
        let (first_ns, last_ns) = (self.start_ns, self.at_ns(self.times - 1));
        let (before, behind) = (
            first_ns.saturating_sub(at_ns),
            at_ns.saturating_sub(last_ns),
        );
        before.max(behind).max(0)
    }
}

/// The arrows from one host to another.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) arrows: u64,
    /// Those that cannot be, if the anchors keep what they promise. They leave no room.
    pub(super) against: u64,
    /// The least time that an arrow takes, about each time.
    pub(super) at: Vec<i64>,
}

impl Pair {
    /// Whether any arrow says anything.
    pub(super) fn has_room(&self) -> bool {
        self.at.iter().any(|room| *room < OPEN_NS)
    }
}

/// The arrows between all hosts.
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

    /// Adds an arrow, by times on the axis. It cannot go back by more than `allowed_ns`.
    pub(super) fn add(&mut self, (pair, times): ((usize, usize), (i64, i64)), allowed_ns: i64) {
        let (from_ns, to_ns) = times;
        let is_full = self.pairs.len() >= PAIRS;
        let pair = match self.pairs.entry(pair) {
            Entry::Occupied(pair) => pair.into_mut(),
            Entry::Vacant(_) if is_full => return,
            Entry::Vacant(place) => place.insert(Pair {
                arrows: 0,
                against: 0,
                at: vec![OPEN_NS; self.grid.times],
            }),
        };
        pair.arrows += 1;
        let takes_ns = to_ns.saturating_sub(from_ns);
        if takes_ns < allowed_ns.saturating_neg() {
            pair.against += 1;
            return;
        }
        let time = self.grid.find(to_ns);
        let at_ns = self.grid.at_ns(time);
        let grid = self.grid;
        let apart = |ns: i64| grid.change_ns(ns.saturating_sub(at_ns).saturating_abs());
        let room_ns = takes_ns
            .saturating_add(apart(from_ns))
            .saturating_add(apart(to_ns))
            .clamp(-OPEN_NS / 1024, OPEN_NS - 1);
        pair.at[time] = pair.at[time].min(room_ns);
    }

    /// Whether an arrow that comes at that time of the axis says anything.
    pub(super) fn counts(&self, pair: (usize, usize), to_ns: i64) -> bool {
        let time = self.grid.find(to_ns);
        let pair = self.pairs.get(&pair);
        pair.is_some_and(|pair| pair.at[time] < OPEN_NS)
    }
}
