//! A slice while all of them are sorted.

use std::cmp::Reverse;
use trace_store::sorter::{Record, long_at, word_at};

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

impl Record for SliceRecord {
    const BYTES: usize = 36;

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.row.to_le_bytes());
        out.extend_from_slice(&self.start_ns.to_le_bytes());
        out.extend_from_slice(&self.end_ns.0.to_le_bytes());
        out.extend_from_slice(&self.key.to_le_bytes());
        out.extend_from_slice(&self.cpu_ns.to_le_bytes());
    }

    fn load(bytes: &[u8]) -> Self {
        SliceRecord {
            row: long_at(bytes, 0),
            start_ns: long_at(bytes, 8).cast_signed(),
            end_ns: Reverse(long_at(bytes, 16).cast_signed()),
            key: word_at(bytes, 24),
            cpu_ns: long_at(bytes, 28).cast_signed(),
        }
    }
}
