//! A slice of a device while all of them are sorted.

use std::cmp::Reverse;
use trace_store::sorter::Record;

/// The value of `launched_ns` if no launch is known.
const UNKNOWN: i64 = i64::MIN;

/// A slice on a track of a device, or a step of a worker that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DeviceSlice {
    /// The device, by the number of its process.
    pub(crate) device: u32,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: Reverse<i64>,
    /// Time from its launch to its begin, or [`UNKNOWN`]. Negative if it begins before its launch.
    launched_ns: i64,
    /// The group of a collective; 0 of what computes.
    pub(crate) collective: u64,
    /// Set if it moves data between devices.
    pub(crate) is_communication: bool,
    /// Whether its launch took the host longer.
    pub(crate) is_short: bool,
    /// Whether it is the replay of a graph.
    pub(crate) is_replay: bool,
    /// Its stream, by the number of its thread.
    pub(crate) stream: u32,
}

impl DeviceSlice {
    /// Returns a slice that computes, without a known launch.
    pub(crate) fn new(device: u32, (start_ns, end_ns): (i64, i64), stream: u32) -> DeviceSlice {
        DeviceSlice {
            device,
            start_ns,
            end_ns: Reverse(end_ns),
            launched_ns: UNKNOWN,
            collective: 0,
            is_communication: false,
            is_short: false,
            is_replay: false,
            stream,
        }
    }

    /// Sets the launch time.
    pub(crate) fn set_launch(&mut self, launch_ns: i64) {
        self.launched_ns = self.start_ns.saturating_sub(launch_ns);
    }

    /// Returns the time from its launch to its begin; 0 if it begins before its launch.
    pub(crate) fn queue_ns(&self) -> Option<i64> {
        (self.launched_ns != UNKNOWN).then(|| self.launched_ns.max(0))
    }

    /// Returns the time by which it begins before its launch, because of an error of the clocks. 0 for most slices.
    pub(crate) fn early_ns(&self) -> i64 {
        self.queue_ns().map_or(0, |_| (-self.launched_ns).max(0))
    }

    /// Returns the launch time, or its begin if that is earlier.
    pub(crate) fn launch_ns(&self) -> Option<i64> {
        let queue_ns = self.queue_ns()?;
        Some(self.start_ns.saturating_sub(queue_ns))
    }
}

impl Record for DeviceSlice {}
