//! A slice while all of them are sorted.

use std::cmp::Reverse;
use trace_store::sorter::Record;

/// A span with a begin and an end, on a row of the trace. In the order of these, a slice comes before those that it contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SliceRecord {
    /// Slices of one row contain each other or lie behind each other.
    pub(crate) row: u64,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: Reverse<i64>,
    /// What it is counted as, by its number among the keys.
    pub(crate) key: u32,
    /// The CPU time that its thread took; negative if it was not recorded.
    pub(crate) cpu_ns: i64,
}

impl Record for SliceRecord {}
