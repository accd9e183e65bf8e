//! The quickest arrows between each two hosts by clocks that need not go together, and where hosts without anchors roughly are by them.

use super::curve::clamp;
use super::slack::PAIRS;
use std::collections::{BTreeMap, BTreeSet};

/// Most arrows that are kept of a pair, and of how many of them one may be wrong.
const KEPT: usize = 16;
const WRONG: u64 = 16;

/// The arrows from one host to another that take the least time.
#[derive(Debug, Default)]
pub(super) struct Quickest {
    arrows: u64,
    /// In their order.
    least: Vec<i64>,
}

impl Quickest {
    fn add(&mut self, takes_ns: i64) {
        self.arrows += 1;
        let place = self.least.partition_point(|least| *least <= takes_ns);
        if place < KEPT {
            self.least.insert(place, takes_ns);
            self.least.truncate(KEPT);
        }
    }

    /// What one takes that is quick, but not so much quicker than all others that its two ends may not belong together.
    fn usual(&self) -> Option<i64> {
        let place = usize::try_from(self.arrows / WRONG).unwrap_or(KEPT);
        self.least.get(place.min(KEPT - 1)).copied()
    }
}

/// The least time that an arrow takes from each host to each other one.
#[derive(Debug, Default)]
pub(super) struct Extremes(BTreeMap<(usize, usize), Quickest>);

/// How far a host may be: the least and the most, as far as they are known.
type Open = (Option<i64>, Option<i64>);

impl Extremes {
    pub(super) fn add(&mut self, pair: (usize, usize), takes_ns: i64) {
        if self.0.len() < PAIRS || self.0.contains_key(&pair) {
            self.0.entry(pair).or_default().add(takes_ns);
        }
    }

    /// What the quickest of each takes.
    pub(super) fn least(&self) -> impl Iterator<Item = ((usize, usize), i64)> {
        let least = self.0.iter();
        least.filter_map(|(pair, quickest)| Some((*pair, *quickest.least.first()?)))
    }

    /// What to add to the times of hosts that have none yet, roughly. `shifts` has what is known.
    ///
    /// Hosts that arrows lead to and from come before those with arrows one way.
    pub(super) fn guess(&self, shifts: &mut [Option<i64>]) {
        let mut open: Vec<Open> = vec![(None, None); shifts.len()];
        let (mut both, mut one) = (BTreeSet::new(), BTreeSet::new());
        let mut next: Vec<usize> = (0..shifts.len()).collect();
        next.retain(|host| shifts[*host].is_some());
        let neighbours = self.neighbours(shifts.len());
        while let Some(host) = next.pop() {
            let shift_ns = shifts[host].unwrap_or(0);
            for (other, is_to, takes_ns) in &neighbours[host] {
                if shifts[*other].is_some() {
                    continue;
                }
                let range = &mut open[*other];
                match is_to {
                    true => range.0 = range.0.max(Some(shift_ns.saturating_sub(*takes_ns))),
                    false => {
                        let most = shift_ns.saturating_add(*takes_ns);
                        range.1 = Some(range.1.map_or(most, |high| high.min(most)));
                    }
                }
                let ready = match range {
                    (Some(_), Some(_)) => &mut both,
                    _ => &mut one,
                };
                ready.insert(*other);
            }
            if next.is_empty() {
                let host = both.pop_first().or_else(|| one.pop_first());
                next.extend(host.inspect(|host| {
                    one.remove(host);
                    shifts[*host] = within(open[*host]);
                }));
            }
        }
    }

    /// Of each host the others: whether the arrows lead to them, and what they take.
    fn neighbours(&self, hosts: usize) -> Vec<Vec<(usize, bool, i64)>> {
        let mut neighbours = vec![Vec::new(); hosts];
        for ((from, to), quickest) in &self.0 {
            if let Some(takes_ns) = quickest.usual() {
                neighbours[*from].push((*to, true, takes_ns));
                neighbours[*to].push((*from, false, takes_ns));
            }
        }
        neighbours
    }
}

fn within(range: Open) -> Option<i64> {
    let ns = match range {
        (Some(low), Some(high)) => low.saturating_add(high.saturating_sub(low) / 2),
        (low, high) => low.or(high)?,
    };
    Some(clamp(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_too_large() {
        let mut extremes = Extremes::default();
        for takes_ns in [i64::MIN, i64::MAX] {
            extremes.add((0, 1), takes_ns);
            extremes.add((1, 0), takes_ns);
            extremes.add((1, 2), takes_ns);
        }
        let mut shifts = [Some(0), None, None];
        extremes.guess(&mut shifts);
        assert!(shifts.iter().all(Option::is_some));
    }
}
