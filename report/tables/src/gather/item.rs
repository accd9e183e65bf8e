//! An event of a slice or flow, and a value of a counter, while all of them are sorted.

use std::cmp::Ordering;
use trace_store::sorter::Record;

/// What an event does. Perfetto takes the events of one time in this order: ends (`E`), then whole spans, the longest first, then all others as they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Act {
    /// The args of an end, at the time of its begin: they belong to that slice.
    EndArgs = 0,
    /// An end of a `B`. `dur_ns` is the duration of its span, [`NO_END`] if it has no begin.
    End,
    Span,
    Begin,
    Instant,
    /// An instant of its process, and one of the whole trace.
    ProcessInstant,
    GlobalInstant,
    AsyncBegin,
    AsyncInstant,
    AsyncEnd,
    /// An arrow leaves the slice that is open here, passes through it, ends in it, or ends in the next one.
    FlowOut,
    FlowStep,
    FlowIn,
    FlowInNext,
}

/// The duration of a slice without an end.
pub(crate) const NO_END: i64 = -1;
/// The row of what lies on no thread.
pub(crate) const NO_ROW: u32 = u32::MAX;

/// An event, its text left in the log of entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) process: u32,
    pub(crate) act: Act,
    /// Whether it is an arrow that a whole span brings: it stands behind that span.
    pub(crate) is_bound: bool,
    /// The row of a thread by its number, [`NO_ROW`] if it is on none.
    pub(crate) row: u32,
    /// Its name and category by their number.
    pub(crate) name: u32,
    pub(crate) ts_ns: i64,
    /// Of an arrow that is bound, that of its span.
    pub(crate) dur_ns: i64,
    /// Where its entry is in the log; in the order of the events.
    pub(crate) at: u64,
}

impl Item {
    /// The place among the events of one time.
    pub(crate) fn rank(&self) -> i64 {
        match self.act {
            Act::EndArgs => i64::MIN,
            Act::End => i64::MIN + 1,
            Act::Span => i64::MAX - self.dur_ns.max(0),
            _ if self.is_bound => i64::MAX - self.dur_ns.max(0),
            _ => i64::MAX,
        }
    }
}

impl Ord for Item {
    #[inline]
    fn cmp(&self, other: &Item) -> Ordering {
        let by_time = (self.process, self.ts_ns).cmp(&(other.process, other.ts_ns));
        by_time.then_with(|| (self.rank(), self.at).cmp(&(other.rank(), other.at)))
    }
}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Item) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Item) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Item {}

impl Record for Item {}

/// A value of one series at a time. Samples have the order of their processes, times and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sample {
    pub(crate) process: u32,
    pub(crate) ts_ns: i64,
    /// In the order of the events.
    pub(crate) at: u64,
    /// The counter's name by its number.
    pub(crate) counter: u32,
    /// The bits of the value.
    pub(crate) bits: u64,
}

impl Record for Sample {}
