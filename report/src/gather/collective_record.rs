//! A collective on one device while those of all devices are sorted.

use trace_merge::collective::CollectiveKey;
use trace_store::sorter::Record;

/// A collective on one device. Sorting puts the devices of one collective next to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CollectiveRecord {
    pub(crate) key: CollectiveKey,
    /// By the number of its process.
    pub(crate) device: u32,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
}

impl Record for CollectiveRecord {}
