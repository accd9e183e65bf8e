//! A collective on one device while those of all devices are sorted.

use trace_store::sorter::{Record, long_at, word_at};

/// A collective on one device: the nth of its name there. Those of one collective follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CollectiveRecord {
    /// The hash of its name.
    pub(crate) name: u64,
    pub(crate) nth: u32,
    /// By the number of its process.
    pub(crate) device: u32,
    pub(crate) start_ns: i64,
}

impl Record for CollectiveRecord {
    const BYTES: usize = 24;

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.name.to_le_bytes());
        out.extend_from_slice(&self.nth.to_le_bytes());
        out.extend_from_slice(&self.device.to_le_bytes());
        out.extend_from_slice(&self.start_ns.to_le_bytes());
    }

    fn load(bytes: &[u8]) -> Self {
        CollectiveRecord {
            name: long_at(bytes, 0),
            nth: word_at(bytes, 8),
            device: word_at(bytes, 12),
            start_ns: long_at(bytes, 16).cast_signed(),
        }
    }
}
