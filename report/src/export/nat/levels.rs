//! How many calls were under way at once, at each time.

use std::collections::BTreeMap;

/// A time in which the number did not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
    pub(super) level: usize,
}

/// The times between begins and ends, from the first to the last. A call is not under way any more when it ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Levels {
    pub(super) segments: Vec<Segment>,
}

impl Levels {
    pub(super) fn of(times: impl Iterator<Item = (i64, i64)>) -> Levels {
        // How many begin and how many end at each time: whether one comes before the other makes no difference.
        let mut changes: BTreeMap<i64, (usize, usize)> = BTreeMap::new();
        for (from_ns, to_ns) in times.filter(|(from_ns, to_ns)| from_ns < to_ns) {
            changes.entry(from_ns).or_default().0 += 1;
            changes.entry(to_ns).or_default().1 += 1;
        }
        let (mut segments, mut level, mut from_ns) = (Vec::new(), 0, None);
        for (to_ns, (begins, ends)) in changes {
            if let Some(from_ns) = from_ns.replace(to_ns) {
                segments.push(Segment {
                    from_ns,
                    to_ns,
                    level,
                });
            }
            level = level + begins - ends;
        }
        Levels { segments }
    }

    /// The most at once.
    pub(super) fn max(&self) -> usize {
        let levels = self.segments.iter().map(|segment| segment.level);
        levels.max().unwrap_or(0)
    }

    /// How long each number was held.
    pub(super) fn ns_at(&self) -> BTreeMap<usize, i64> {
        let mut ns_at = BTreeMap::new();
        for segment in &self.segments {
            *ns_at.entry(segment.level).or_default() += segment.to_ns - segment.from_ns;
        }
        ns_at
    }

    /// The least number that was not exceeded for this share of the time.
    pub(super) fn at_share(&self, share: f64) -> usize {
        let ns_at = self.ns_at();
        let all_ns: i64 = ns_at.values().sum();
        let mut below_ns = 0;
        let mut levels = ns_at.iter();
        let found = levels.find(|(_, ns)| {
            below_ns += **ns;
            below_ns as f64 >= share * all_ns as f64
        });
        found.map_or(0, |(level, _)| *level)
    }

    /// How many there were in the middle of a time.
    pub(super) fn at_middle(&self, (from_ns, to_ns): (i64, i64)) -> usize {
        let middle_ns = from_ns + (to_ns - from_ns) / 2;
        let behind = |segment: &Segment| segment.to_ns <= middle_ns;
        let at = self.segments.partition_point(behind);
        self.segments.get(at).map_or(0, |segment| segment.level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_touch_are_one_behind_the_other() {
        let levels = Levels::of([(10, 20), (20, 30), (22, 24), (50, 60), (5, 5)].into_iter());
        let found: Vec<_> = levels
            .segments
            .iter()
            .map(|of| (of.from_ns, of.level))
            .collect();
        assert_eq!(
            found,
            [(10, 1), (20, 1), (22, 2), (24, 1), (30, 0), (50, 1)]
        );
        assert_eq!((levels.max(), levels.at_middle((22, 24))), (2, 2));
        // Of 50 ns 20 had none, 28 one.
        assert_eq!(
            [0.4, 0.5, 0.96, 0.97].map(|share| levels.at_share(share)),
            [0, 1, 1, 2]
        );
        assert_eq!(
            (Levels::default().max(), Levels::default().at_share(0.5)),
            (0, 0)
        );
    }
}
