//! A slice of a device while all of them are sorted.

use std::cmp::Reverse;
use trace_store::sorter::{Record, long_at, word_at};

/// A slice on a track of a device, or a step of a worker that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DeviceSlice {
    /// The device, by the number of its process.
    pub(crate) device: u32,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: Reverse<i64>,
    /// How long it was launched before it began; negative if nothing tells.
    pub(crate) queue_ns: i64,
    /// The hash of a collective's name; 0 of what computes.
    pub(crate) collective: u64,
    /// Whether its launch took the host longer.
    pub(crate) is_short: bool,
    /// Whether it is the replay of a graph.
    pub(crate) is_replay: bool,
    /// Its stream, by the number of its thread.
    pub(crate) stream: u32,
}

impl DeviceSlice {
    /// When it was launched.
    pub(crate) fn launch_ns(&self) -> Option<i64> {
        (self.queue_ns >= 0).then(|| self.start_ns.saturating_sub(self.queue_ns))
    }
}

impl Record for DeviceSlice {
    const BYTES: usize = 41;

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.device.to_le_bytes());
        out.extend_from_slice(&self.start_ns.to_le_bytes());
        out.extend_from_slice(&self.end_ns.0.to_le_bytes());
        out.extend_from_slice(&self.queue_ns.to_le_bytes());
        out.extend_from_slice(&self.collective.to_le_bytes());
        out.push(u8::from(self.is_short) | u8::from(self.is_replay) << 1);
        out.extend_from_slice(&self.stream.to_le_bytes());
    }

    fn load(bytes: &[u8]) -> Self {
        DeviceSlice {
            device: word_at(bytes, 0),
            start_ns: long_at(bytes, 4).cast_signed(),
            end_ns: Reverse(long_at(bytes, 12).cast_signed()),
            queue_ns: long_at(bytes, 20).cast_signed(),
            collective: long_at(bytes, 28),
            is_short: bytes[36] & 1 != 0,
            is_replay: bytes[36] & 2 != 0,
            stream: word_at(bytes, 37),
        }
    }
}
