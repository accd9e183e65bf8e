//! Derives the bounds of each host's error over time from the rule that no arrow goes back.
//!
//! The error of a host has to be subtracted from its times. Three constraints bound it: the maximum error of its anchors, each arrow between two hosts, and the
//! maximum drift of clocks. All of them are differences, so the tightest bounds that follow from them are shortest paths.

mod search;

use search::Search;
use std::collections::HashSet;

/// Value of a missing bound.
pub(crate) const UNBOUNDED_NS: i64 = i64::MAX / 4;

/// Constraints on the errors of hosts at times with equal distances.
pub(crate) struct Constraints {
    /// Maximum change of an error from one time to the next.
    pub(crate) change_ns: i64,
    /// Range of the error of each host at each time. It is zero for the reference host.
    pub(crate) hosts: Vec<Vec<Range>>,
    /// Two hosts, and the maximum by which the error of the second one exceeds that of the first, at each time.
    pub(crate) arrows: Vec<(usize, usize, Vec<i64>)>,
}

/// Lower and upper bound.
pub(crate) type Range = (i64, i64);

/// Arrows that contradict each other. Each has the index of an arrow and of a time.
pub(crate) type Cycle = Vec<(usize, usize)>;

/// Range without bounds.
pub(crate) const UNBOUNDED: Range = (-UNBOUNDED_NS, UNBOUNDED_NS);

impl Constraints {
    /// Returns the tightest ranges that follow from all constraints.
    ///
    /// The upper bounds of all hosts together satisfy the constraints. So do the lower bounds, and the middles.
    ///
    /// # Errors
    /// Returns cycles of contradicting arrows if the constraints cannot be satisfied.
    pub(crate) fn solve(&self) -> Result<Vec<Vec<Range>>, Vec<Cycle>> {
        let high = Search::new(self, false).run()?;
        let low = Search::new(self, true).run()?;
        let cycles = self.contradictions(&low, &high);
        if !cycles.is_empty() {
            return Err(cycles);
        }
        let hosts = low.bounds.into_iter().zip(high.bounds);
        let range = |(low, high): (i64, i64)| (low.saturating_neg(), high);
        Ok(hosts
            .map(|(low, high)| low.into_iter().zip(high).map(range).collect())
            .collect())
    }

    /// Returns the arrows that lead to empty ranges. It examines the worst range of each host, and returns only cycles without common arrows.
    fn contradictions(&self, low: &Search<'_>, high: &Search<'_>) -> Vec<Cycle> {
        let hosts = low.bounds.iter().zip(&high.bounds).enumerate();
        let worst = hosts.filter_map(|(host, (low, high))| {
            let sums = low.iter().zip(high).enumerate();
            let sums = sums.map(|(time, (low, high))| (low.saturating_add(*high), host, time));
            sums.min().filter(|worst| worst.0 < 0)
        });
        let mut worst: Vec<_> = worst.collect();
        worst.sort_unstable();
        let (mut cycles, mut used): (Vec<Cycle>, HashSet<(usize, usize)>) = Default::default();
        for (_, host, time) in worst {
            let cycle = [low.path((host, time)), high.path((host, time))].concat();
            if !cycle.is_empty() && cycle.iter().all(|arrow| !used.contains(arrow)) {
                used.extend(&cycle);
                cycles.push(cycle);
            }
        }
        cycles
    }
}

/// Returns the middle of a range, its only bound, or 0 if it has none.
pub(crate) fn middle((low, high): Range) -> i64 {
    match (low > -UNBOUNDED_NS, high < UNBOUNDED_NS) {
        (true, true) => low + (high - low) / 2,
        (true, false) => low,
        (false, true) => high,
        (false, false) => 0,
    }
}

/// Returns true if the range has both bounds.
pub(crate) fn is_bounded((low, high): Range) -> bool {
    low > -UNBOUNDED_NS && high < UNBOUNDED_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_ends_for_any_arrows() {
        let least = [
            -UNBOUNDED_NS / 1024,
            -UNBOUNDED_NS,
            -i64::MAX / 2,
            -i64::MAX,
            i64::MIN,
        ];
        for (hosts, most) in (2..12).flat_map(|hosts| least.map(|most| (hosts, most))) {
            let pairs = (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to)));
            let pairs = pairs.filter(|(from, to)| from != to);
            let mut ranges = vec![vec![UNBOUNDED]; hosts];
            ranges[0] = vec![(0, 0)];
            let mut constraints = Constraints {
                change_ns: 0,
                hosts: ranges,
                arrows: pairs.map(|(from, to)| (from, to, vec![most])).collect(),
            };
            assert!(constraints.solve().is_err(), "{hosts} {most}");
            // Arrows in one direction have no cycle.
            constraints.arrows.retain(|(from, to, _)| from < to);
            let _ = constraints.solve();
        }
    }
}
