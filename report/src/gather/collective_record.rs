//! A collective on one device while those of all devices are sorted.

use trace_merge::collective::CollectiveKey;
use trace_store::sorter::{Record, long_at, word_at};

/// A collective on one device. Sorting puts the devices of one collective next to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CollectiveRecord {
    pub(crate) key: CollectiveKey,
    /// By the number of its process.
    pub(crate) device: u32,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
}

impl Record for CollectiveRecord {
    const BYTES: usize = 32;

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key.group.to_le_bytes());
        out.extend_from_slice(&self.key.nth.to_le_bytes());
        out.extend_from_slice(&self.device.to_le_bytes());
        out.extend_from_slice(&self.start_ns.to_le_bytes());
        out.extend_from_slice(&self.end_ns.to_le_bytes());
    }

    fn load(bytes: &[u8]) -> Self {
        CollectiveRecord {
            key: CollectiveKey {
                group: long_at(bytes, 0),
                nth: word_at(bytes, 8),
            },
            device: word_at(bytes, 12),
            start_ns: long_at(bytes, 16).cast_signed(),
            end_ns: long_at(bytes, 24).cast_signed(),
        }
    }
}
