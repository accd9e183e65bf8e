//! When something was: stretches of time, and how many there can be is bounded.

/// Most stretches.
const MOST: usize = 1024;

/// Stretches that do not touch, in their order. Where there would be too many, the shortest gaps between them are filled.
#[derive(Debug, Default)]
pub(super) struct Times {
    stretches: Vec<(i64, i64)>,
}

impl Times {
    pub(super) fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Adds a stretch, its end included.
    pub(super) fn add(&mut self, (start, end): (i64, i64)) {
        let first = self.stretches.partition_point(|one| one.1 < start);
        let behind = self.stretches.partition_point(|one| one.0 <= end);
        if first >= behind {
            self.stretches.insert(first, (start, end));
            if self.stretches.len() > 2 * MOST {
                self.fill_gaps();
            }
            return;
        }
        let whole = (
            start.min(self.stretches[first].0),
            end.max(self.stretches[behind - 1].1),
        );
        self.stretches[first] = whole;
        self.stretches.drain(first + 1..behind);
    }

    /// Fills the shortest gaps.
    fn fill_gaps(&mut self) {
        let gap = |one: &(i64, i64), next: &(i64, i64)| next.0.abs_diff(one.1);
        let pairs = self.stretches.windows(2);
        let mut gaps: Vec<u64> = pairs.map(|pair| gap(&pair[0], &pair[1])).collect();
        let filled = gaps.len() - (MOST - 1);
        let (_, longest, _) = gaps.select_nth_unstable(filled - 1);
        let longest = *longest;
        self.stretches.dedup_by(|next, one| {
            let fills = gap(one, next) <= longest;
            if fills {
                one.1 = next.1;
            }
            fills
        });
    }

    /// Whether a stretch has a moment in common with these.
    pub(super) fn meet(&self, (start, end): (i64, i64)) -> bool {
        let first = self.stretches.partition_point(|one| one.1 < start);
        self.stretches.get(first).is_some_and(|one| one.0 <= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_there_are_none_is_missed() {
        let mut times = Times::default();
        let start = |number: i64| number.wrapping_mul(7919) % 100_003 * 100;
        for number in 0..20_000 {
            times.add((start(number), start(number) + 10));
            assert!(times.stretches.len() <= 2 * MOST);
        }
        assert!((0..20_000).all(|number| times.meet((start(number) + 10, start(number) + 11))));
        assert!(!times.meet((-10, -1)) && !times.meet((20_000_000, i64::MAX)));
        // Far apart, they stay apart.
        let mut times = Times::default();
        (0..1000).for_each(|number| times.add((number * 100, number * 100 + 10)));
        assert!((0..1000).all(|number| !times.meet((number * 100 + 11, number * 100 + 99))));
    }
}
