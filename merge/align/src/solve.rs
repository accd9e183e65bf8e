//! What no-arrow-goes-back says of how far each host's place is wrong, at many times.
//!
//! The error of a host is what must be taken off its times. Three things bound it: what its anchors promise, each arrow between two hosts, and that it
//! changes no faster than clocks drift. These are differences, so the bounds that follow from all of them together are shortest paths.

mod search;

use search::Search;
use std::collections::HashSet;

/// No bound.
pub(crate) const OPEN_NS: i64 = i64::MAX / 4;

/// What is known of the errors of hosts, at times that are all as far apart.
pub(crate) struct Known {
    /// How much an error can change from one time to the next.
    pub(crate) change_ns: i64,
    /// Of each host, of each time: the least and the greatest that its error can be. All zero for the host that the others are brought to.
    pub(crate) hosts: Vec<Vec<Range>>,
    /// From one host to another: the error of the second one is larger by at most so much, at each time.
    pub(crate) arrows: Vec<(usize, usize, Vec<i64>)>,
}

/// The least and the greatest value.
pub(crate) type Range = (i64, i64);

/// Arrows that cannot all be: which one, and at which time.
pub(crate) type Ring = Vec<(usize, usize)>;

/// Nothing is known.
pub(crate) const UNKNOWN: Range = (-OPEN_NS, OPEN_NS);

impl Known {
    /// All that follows; if it contradicts itself, rings of arrows that do.
    ///
    /// All greatest errors together are possible, and all least ones, and so is what lies in the middle.
    pub(crate) fn solve(&self) -> Result<Vec<Vec<Range>>, Vec<Ring>> {
        let high = Search::new(self, false).run()?;
        let low = Search::new(self, true).run()?;
        let rings = self.broken(&low, &high);
        if !rings.is_empty() {
            return Err(rings);
        }
        let hosts = low.bounds.into_iter().zip(high.bounds);
        let range = |(low, high): (i64, i64)| (low.saturating_neg(), high);
        Ok(hosts
            .map(|(low, high)| low.into_iter().zip(high).map(range).collect())
            .collect())
    }

    /// What leads to ranges that are empty: the emptiest one of each host, of those that have nothing in common.
    fn broken(&self, low: &Search<'_>, high: &Search<'_>) -> Vec<Ring> {
        let hosts = low.bounds.iter().zip(&high.bounds).enumerate();
        let worst = hosts.filter_map(|(host, (low, high))| {
            let sums = low.iter().zip(high).enumerate();
            let sums = sums.map(|(time, (low, high))| (low.saturating_add(*high), host, time));
            sums.min().filter(|worst| worst.0 < 0)
        });
        let mut worst: Vec<_> = worst.collect();
        worst.sort_unstable();
        let (mut rings, mut seen): (Vec<Ring>, HashSet<(usize, usize)>) = Default::default();
        for (_, host, time) in worst {
            let ring = [low.ring((host, time)), high.ring((host, time))].concat();
            if !ring.is_empty() && ring.iter().all(|arrow| !seen.contains(arrow)) {
                seen.extend(&ring);
                rings.push(ring);
            }
        }
        rings
    }
}

/// A value in the range: the middle where both ends are known, else the one that is.
pub(crate) fn middle((low, high): Range) -> i64 {
    match (low > -OPEN_NS, high < OPEN_NS) {
        (true, true) => low + (high - low) / 2,
        (true, false) => low,
        (false, true) => high,
        (false, false) => 0,
    }
}

/// Whether both ends are known.
pub(crate) fn is_closed((low, high): Range) -> bool {
    low > -OPEN_NS && high < OPEN_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_ends_whatever_arrows_say() {
        let least = [
            -OPEN_NS / 1024,
            -OPEN_NS,
            -i64::MAX / 2,
            -i64::MAX,
            i64::MIN,
        ];
        for (hosts, most) in (2..12).flat_map(|hosts| least.map(|most| (hosts, most))) {
            let pairs = (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to)));
            let pairs = pairs.filter(|(from, to)| from != to);
            let mut ranges = vec![vec![UNKNOWN]; hosts];
            ranges[0] = vec![(0, 0)];
            let mut known = Known {
                change_ns: 0,
                hosts: ranges,
                arrows: pairs.map(|(from, to)| (from, to, vec![most])).collect(),
            };
            assert!(known.solve().is_err(), "{hosts} {most}");
            // One way there is no ring.
            known.arrows.retain(|(from, to, _)| from < to);
            let _ = known.solve();
        }
    }
}
