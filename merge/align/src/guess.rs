//! The shortest arrows between each two hosts by clocks that may not be aligned, and a rough estimate of the clocks of hosts without anchors from them.

use super::curve::clamp;
use super::slack::MAX_PAIRS;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of stored arrows of a pair.
const KEPT: usize = 16;
/// At most one in this many arrows is assumed to be wrong.
const WRONG: u64 = 16;

/// Shortest arrows from one host to another.
#[derive(Debug, Default)]
pub(super) struct Shortest {
    /// Number of all arrows.
    arrows: u64,
    /// Times that the shortest arrows take, in ascending order.
    least: Vec<i64>,
}

impl Shortest {
    fn add(&mut self, takes_ns: i64) {
        self.arrows += 1;
        let at = self.least.partition_point(|least| *least <= takes_ns);
        if at < KEPT {
            self.least.insert(at, takes_ns);
            self.least.truncate(KEPT);
        }
    }

    /// Returns the time of a short arrow. It skips the shortest ones, because their two ends may not belong together.
    fn usual(&self) -> Option<i64> {
        let at = usize::try_from(self.arrows / WRONG).unwrap_or(KEPT);
        self.least.get(at.min(KEPT - 1)).copied()
    }
}

/// Shortest arrows from each host to each other one.
#[derive(Debug, Default)]
pub(super) struct Extremes(BTreeMap<(usize, usize), Shortest>);

/// Lower and upper bound of the shift of a host, if they exist.
type OpenRange = (Option<i64>, Option<i64>);

impl Extremes {
    pub(super) fn add(&mut self, pair: (usize, usize), takes_ns: i64) {
        if self.0.len() < MAX_PAIRS || self.0.contains_key(&pair) {
            self.0.entry(pair).or_default().add(takes_ns);
        }
    }

    /// Returns the time of the shortest arrow of each pair.
    pub(super) fn shortest(&self) -> impl Iterator<Item = ((usize, usize), i64)> {
        let pairs = self.0.iter();
        pairs.filter_map(|(pair, shortest)| Some((*pair, *shortest.least.first()?)))
    }

    /// Estimates the shifts of hosts from the known shifts of others.
    ///
    /// Hosts with arrows in both directions are estimated before hosts with arrows in one direction.
    pub(super) fn guess(&self, shifts: &mut [Option<i64>]) {
        let mut ranges: Vec<OpenRange> = vec![(None, None); shifts.len()];
        let (mut both_ways, mut one_way) = (BTreeSet::new(), BTreeSet::new());
        let mut next: Vec<usize> = (0..shifts.len()).collect();
        next.retain(|host| shifts[*host].is_some());
        let neighbours = self.neighbours(shifts.len());
        while let Some(host) = next.pop() {
            let shift_ns = shifts[host].unwrap_or(0);
            for (other, is_outgoing, takes_ns) in &neighbours[host] {
                if shifts[*other].is_some() {
                    continue;
                }
                let range = &mut ranges[*other];
                match is_outgoing {
                    true => range.0 = range.0.max(Some(shift_ns.saturating_sub(*takes_ns))),
                    false => {
                        let most = shift_ns.saturating_add(*takes_ns);
                        range.1 = Some(range.1.map_or(most, |high| high.min(most)));
                    }
                }
                let ready = match range {
                    (Some(_), Some(_)) => &mut both_ways,
                    _ => &mut one_way,
                };
                ready.insert(*other);
            }
            if next.is_empty() {
                let host = both_ways.pop_first().or_else(|| one_way.pop_first());
                next.extend(host.inspect(|host| {
                    one_way.remove(host);
                    shifts[*host] = middle(ranges[*host]);
                }));
            }
        }
    }

    /// Returns the neighbours of each host. Each has a host number, true for arrows that lead to it, and the time that they take.
    fn neighbours(&self, hosts: usize) -> Vec<Vec<(usize, bool, i64)>> {
        let mut neighbours = vec![Vec::new(); hosts];
        for ((from, to), shortest) in &self.0 {
            if let Some(takes_ns) = shortest.usual() {
                neighbours[*from].push((*to, true, takes_ns));
                neighbours[*to].push((*from, false, takes_ns));
            }
        }
        neighbours
    }
}

/// Returns the middle of a range, or its only bound.
fn middle(range: OpenRange) -> Option<i64> {
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
    fn extreme_times_do_not_overflow() {
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
