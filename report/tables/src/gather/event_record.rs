//! Records of fixed size to sort: events of slices and flows, and values of counters.

use std::cmp::Ordering;
use trace_store::sorter::Record;

/// Kind of an event. Perfetto processes events of the same time in this order: ends (`E`), then complete spans, the longest first, and then all others in the
/// order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum EventKind {
    /// Args of an end, with the time of the begin, because they belong to that slice.
    EndArgs = 0,
    /// An end of a `B`. `dur_ns` is the duration of its span, or [`NO_END`] if it has no begin.
    End,
    Span,
    Begin,
    Instant,
    /// An instant of a process.
    ProcessInstant,
    /// An instant of the whole trace.
    GlobalInstant,
    AsyncBegin,
    AsyncInstant,
    AsyncEnd,
    /// Start of an arrow in the current slice.
    FlowOut,
    /// Step of an arrow in the current slice.
    FlowStep,
    /// End of an arrow in the current slice.
    FlowIn,
    /// End of an arrow in the next slice.
    FlowInNext,
}

/// Duration of a slice without an end.
pub(crate) const NO_END: i64 = -1;
/// Lane of an event that is not on a thread.
pub(crate) const NO_LANE: u32 = u32::MAX;

/// Record of an event. Its texts are in the log of entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventRecord {
    pub(crate) process: u32,
    pub(crate) kind: EventKind,
    /// True for an arrow of a complete span, which is sorted after that span.
    pub(crate) is_bound: bool,
    /// Number of the thread's lane, or [`NO_LANE`].
    pub(crate) lane: u32,
    /// Number of the name and category.
    pub(crate) name: u32,
    pub(crate) ts_ns: i64,
    /// Duration of the slice, or of its span for a bound arrow.
    pub(crate) dur_ns: i64,
    /// Offset of the entry in the log, which ascends in the order of the events.
    pub(crate) at: u64,
}

impl EventRecord {
    /// Returns the sort key among events of the same time.
    pub(crate) fn rank(&self) -> i64 {
        match self.kind {
            EventKind::EndArgs => i64::MIN,
            EventKind::End => i64::MIN + 1,
            EventKind::Span => i64::MAX - self.dur_ns.max(0),
            _ if self.is_bound => i64::MAX - self.dur_ns.max(0),
            _ => i64::MAX,
        }
    }
}

impl Ord for EventRecord {
    #[inline]
    fn cmp(&self, other: &EventRecord) -> Ordering {
        let by_time = (self.process, self.ts_ns).cmp(&(other.process, other.ts_ns));
        by_time.then_with(|| (self.rank(), self.at).cmp(&(other.rank(), other.at)))
    }
}

impl PartialOrd for EventRecord {
    fn partial_cmp(&self, other: &EventRecord) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for EventRecord {
    fn eq(&self, other: &EventRecord) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for EventRecord {}

impl Record for EventRecord {}

/// Record of a counter value. Samples are sorted by process, time and order of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sample {
    pub(crate) process: u32,
    pub(crate) ts_ns: i64,
    /// Offset of the entry in the log, which ascends in the order of the events.
    pub(crate) at: u64,
    /// Number of the counter's name.
    pub(crate) counter: u32,
    /// Bits of the value, which is an `f64`.
    pub(crate) bits: u64,
}

impl Record for Sample {}
