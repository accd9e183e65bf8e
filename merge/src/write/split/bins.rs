//! How much text begins and ends in each of many stretches of time.

use crate::event::edges::Edges;

/// Most of them.
const MOST: usize = 1 << 16;
/// Into how many one is divided at a time.
const DIVISION: usize = 64;

/// Stretches of time without gaps; the first has no begin and the last no end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bins {
    /// Where each begins, in ns, ascending.
    begins_ns: Vec<i64>,
}

/// Text and the events it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) bytes: u64,
    pub(crate) events: u64,
}

/// A part of the trace: the shortest text that shows all of it between two cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartStretch {
    pub(super) edges: Edges,
    /// Maximum length of its text.
    pub(super) bytes: u64,
    pub(super) events: u64,
}

/// Maximum length of the whole times of a cut span.
pub(super) const WHOLE_TIMES: usize =
    br#","sa_whole_ts":18446744073709551.615,"sa_whole_dur":18446744073709551.615"#.len();
/// Length of the mark of a span that crosses an edge.
pub(super) const MARK: usize = br#","args":{"sa_cut":true}"#.len();

/// What begins and what ends in each bin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) begun: Vec<Amount>,
    pub(crate) ended: Vec<Amount>,
    /// What has no time.
    pub(crate) timeless: Amount,
}

impl Bins {
    /// Bins that begin at these times, or at some of them.
    pub(crate) fn new(mut times_ns: Vec<i64>) -> Bins {
        times_ns.sort_unstable();
        times_ns.dedup();
        let step = times_ns.len().div_ceil(MOST / 4).max(1);
        let begins = times_ns.into_iter().step_by(step);
        let begins_ns = std::iter::once(i64::MIN).chain(begins.filter(|at_ns| *at_ns != i64::MIN));
        Bins {
            begins_ns: begins_ns.collect(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.begins_ns.len()
    }

    /// Where bin `number` begins; the end of time behind the last one.
    pub(crate) fn begin_ns(&self, number: usize) -> i64 {
        self.begins_ns.get(number).copied().unwrap_or(i64::MAX)
    }

    /// The bin of a time.
    pub(crate) fn find(&self, at_ns: i64) -> usize {
        self.begins_ns.partition_point(|begin| *begin <= at_ns) - 1
    }

    /// Divides the bins in which more than `most_bytes` begin; `None` if there is none to divide. Nothing begins after `last_ns`.
    pub(crate) fn divided(&self, sums: &Sums, most_bytes: u64, last_ns: i64) -> Option<Bins> {
        let width = |number: usize| {
            let end = self.begin_ns(number + 1).min(last_ns.saturating_add(1));
            let width = end.saturating_sub(self.begins_ns[number]);
            width.max(0).unsigned_abs()
        };
        let is_large = |number: &usize| {
            let has_begin = self.begins_ns[*number] != i64::MIN;
            has_begin && sums.begun[*number].bytes > most_bytes && width(*number) > 1
        };
        let large = (0..self.len()).filter(is_large).count();
        let pieces = ((MOST - self.len()) / large.max(1)).min(DIVISION) as u64;
        if large == 0 || pieces < 2 {
            return None;
        }
        let mut begins_ns = Vec::with_capacity(self.len() + large * DIVISION);
        for (number, begin) in self.begins_ns.iter().enumerate() {
            let width = if is_large(&number) { width(number) } else { 1 };
            let steps = (0..width).step_by(usize::try_from(width.div_ceil(pieces)).unwrap_or(1));
            begins_ns.extend(steps.map(|after| begin.saturating_add_unsigned(after)));
        }
        Some(Bins { begins_ns })
    }
}

impl Amount {
    /// Returns one event with this length of text.
    pub(crate) fn of(bytes: usize) -> Amount {
        Amount {
            bytes: bytes as u64,
            events: 1,
        }
    }

    pub(crate) fn add(&mut self, other: Amount) {
        self.bytes += other.bytes;
        self.events += other.events;
    }

    pub(crate) fn remove(&mut self, other: Amount) {
        self.bytes -= other.bytes;
        self.events -= other.events;
    }
}

impl Sums {
    pub(crate) fn new(bins: &Bins) -> Sums {
        Sums {
            begun: vec![Amount::default(); bins.len()],
            ended: vec![Amount::default(); bins.len()],
            timeless: Amount::default(),
        }
    }

    /// Adds an event; one without an end is never over.
    pub(crate) fn add(&mut self, begin: usize, end: Option<usize>, bytes: usize) {
        let amount = Amount::of(bytes);
        self.begun[begin].add(amount);
        if let Some(end) = end {
            self.ended[end].add(amount);
        }
    }

    /// The sums of both.
    pub(crate) fn joined(mut self, other: Sums) -> Sums {
        let begun = self.begun.iter_mut().zip(other.begun);
        let ended = self.ended.iter_mut().zip(other.ended);
        begun.chain(ended).for_each(|(to, from)| to.add(from));
        self.timeless.add(other.timeless);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_has_a_bin() {
        let bins = Bins::new(vec![30, 10, 20, 10]);
        assert_eq!(bins.len(), 4);
        for (at_ns, expected) in [
            (i64::MIN, 0),
            (9, 0),
            (10, 1),
            (29, 2),
            (30, 3),
            (i64::MAX, 3),
        ] {
            assert_eq!(bins.find(at_ns), expected, "{at_ns}");
        }
        assert_eq!((bins.begin_ns(0), bins.begin_ns(4)), (i64::MIN, i64::MAX));
    }

    #[test]
    fn bins_with_too_much_are_divided_down_to_a_ns() {
        let mut bins = Bins::new(vec![0, 1_000]);
        let sums = |bins: &Bins| {
            let mut sums = Sums::new(bins);
            for at_ns in [0, 500, 501, 1_001] {
                let bin = bins.find(at_ns);
                sums.add(bin, Some(bin), 10);
            }
            sums
        };
        let mut rounds = 0;
        while let Some(more) = bins.divided(&sums(&bins), 9, 1_001) {
            (bins, rounds) = (more, rounds + 1);
        }
        assert_eq!(rounds, 2, "{bins:?}");
        let found = [0, 500, 501, 1_001].map(|at_ns| bins.find(at_ns));
        assert!(found.is_sorted() && found[1] < found[2], "{found:?}");
        assert_eq!(bins.begin_ns(bins.find(501)), 501);
    }

    #[test]
    fn many_times_are_thinned() {
        let bins = Bins::new((0..1_000_000).collect());
        assert!(
            (MOST / 8..=MOST / 4 + 1).contains(&bins.len()),
            "{}",
            bins.len()
        );
    }
}
