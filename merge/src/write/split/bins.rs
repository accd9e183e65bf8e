//! Amounts of text that begin and end in each of many time ranges.

use crate::event::edges::Edges;

/// Maximum number of bins.
const MAX_BINS: usize = 1 << 16;
/// Maximum number of bins into which a bin is divided at once.
const DIVISION: usize = 64;

/// Consecutive time ranges. The first has no begin and the last has no end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bins {
    /// Begin of each bin in ns, ascending.
    begins_ns: Vec<i64>,
}

/// Length of text, and its number of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) bytes: u64,
    pub(crate) events: u64,
}

/// A part of the trace between two cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartRange {
    pub(super) edges: Edges,
    /// Maximum length of its text.
    pub(super) bytes: u64,
    pub(super) events: u64,
}

/// Maximum length of the args with the complete times of a cut span.
pub(super) const WHOLE_TIMES: usize =
    br#","sa_whole_ts":18446744073709551.615,"sa_whole_dur":18446744073709551.615"#.len();
/// Length of the mark of a span that crosses an edge.
pub(super) const MARK: usize = br#","args":{"sa_cut":true}"#.len();

/// Amounts that begin and end in each bin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) begun: Vec<Amount>,
    pub(crate) ended: Vec<Amount>,
    /// Events without a time.
    pub(crate) timeless: Amount,
}

impl Bins {
    /// Creates bins that begin at these times, or at some of them.
    pub(crate) fn new(mut times_ns: Vec<i64>) -> Bins {
        times_ns.sort_unstable();
        times_ns.dedup();
        let step = times_ns.len().div_ceil(MAX_BINS / 4).max(1);
        let begins = times_ns.into_iter().step_by(step);
        let begins_ns = std::iter::once(i64::MIN).chain(begins.filter(|at_ns| *at_ns != i64::MIN));
        Bins {
            begins_ns: begins_ns.collect(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.begins_ns.len()
    }

    /// Returns the begin of bin `number`, or `i64::MAX` after the last one.
    pub(crate) fn begin_ns(&self, number: usize) -> i64 {
        self.begins_ns.get(number).copied().unwrap_or(i64::MAX)
    }

    /// Returns the number of the bin that contains a time.
    pub(crate) fn find(&self, at_ns: i64) -> usize {
        self.begins_ns.partition_point(|begin| *begin <= at_ns) - 1
    }

    /// Divides the bins in which more than `max_bytes` begin. Returns `None` if there are none to
    /// divide. No event begins after `last_ns`.
    pub(crate) fn divided(&self, sums: &Sums, max_bytes: u64, last_ns: i64) -> Option<Bins> {
        let width = |number: usize| {
            let end = self.begin_ns(number + 1).min(last_ns.saturating_add(1));
            let width = end.saturating_sub(self.begins_ns[number]);
            width.max(0).unsigned_abs()
        };
        let is_large = |number: &usize| {
            let has_begin = self.begins_ns[*number] != i64::MIN;
            has_begin && sums.begun[*number].bytes > max_bytes && width(*number) > 1
        };
        let large = (0..self.len()).filter(is_large).count();
        let pieces = ((MAX_BINS - self.len()) / large.max(1)).min(DIVISION) as u64;
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
    pub(crate) fn event(bytes: usize) -> Amount {
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

    /// Adds an event. Without an end, it stays open until the end of the trace.
    pub(crate) fn add(&mut self, begin: usize, end: Option<usize>, bytes: usize) {
        let amount = Amount::event(bytes);
        self.begun[begin].add(amount);
        if let Some(end) = end {
            self.ended[end].add(amount);
        }
    }

    /// Returns the sums of both.
    pub(crate) fn joined(mut self, other: Sums) -> Sums {
        let begun = self.begun.iter_mut().zip(other.begun);
        let ended = self.ended.iter_mut().zip(other.ended);
        begun.chain(ended).for_each(|(to, from)| to.add(from));
        self.timeless.add(other.timeless);
        self
    }
}
