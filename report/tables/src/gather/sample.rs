//! A value of a counter while all of them are sorted.

use trace_store::sorter::Record;

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
