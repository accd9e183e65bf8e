//! Slices of devices, with their launches and collectives, while all of them are sorted.

use super::edge::number;
use super::request_moment::arg;
use sa_format::Phase;
use std::cmp::Reverse;
use trace_merge::collective::CollectiveKey;
use trace_merge::events::{Devices, PlacedEvent};
use trace_store::sorter::Record;
use xxhash_rust::xxh3::xxh3_64_with_seed;

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

/// Args that number launches in traces of other profilers: a call and its work have the same number.
const NUMBERS: [&str; 3] = ["correlation", "correlation_id", "connection_id"];
/// Values of these args that mean no launch.
const NO_NUMBERS: [u64; 3] = [0, u32::MAX as u64, u64::MAX];

/// One side of a launch, found by an arrow or an arg. Sorted, the calls of a launch come before its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LaunchEnd {
    /// Identifies the launch.
    pub(crate) key: u64,
    /// True for the work, false for the call.
    pub(crate) is_work: bool,
    /// The time of its begin.
    pub(crate) ns: i64,
    /// The duration of the call; −1 if it is not known, and for work.
    pub(crate) dur_ns: i64,
    /// The device that worked; 0 for calls.
    pub(crate) device: u32,
    /// The stream of the work, by the number of its thread.
    pub(crate) stream: u32,
}

impl LaunchEnd {
    /// Returns the side of a launch that a flow event is, if its trace has a device.
    pub(crate) fn of_arrow(
        devices: &Devices,
        event: &PlacedEvent<'_>,
        process: usize,
    ) -> Option<LaunchEnd> {
        let scope = devices.launch_scope(process)?;
        let is_work = devices.shows_work(event, process);
        // Any phase will do for work: a merge reverses arrows that end before they begin.
        if !is_work && event.phase == Phase::FlowEnd {
            return None;
        }
        let texts = [event.name(), event.category()];
        let seed = texts
            .iter()
            .fold(scope, |seed, text| xxh3_64_with_seed(text.as_bytes(), seed));
        Some(LaunchEnd {
            key: xxh3_64_with_seed(&event.id()?.to_le_bytes(), seed),
            is_work,
            ns: event.ts_ns,
            dur_ns: -1,
            device: match is_work {
                true => number(devices.device(process)?),
                false => 0,
            },
            stream: number(event.thread),
        })
    }

    /// Returns the sides of launches that the args of a span name. `dur_ns` is the duration of a call, and `None` for work.
    pub(crate) fn of_args(
        devices: &Devices,
        event: &PlacedEvent<'_>,
        process: usize,
        dur_ns: Option<i64>,
    ) -> impl Iterator<Item = LaunchEnd> {
        let scope = devices.launch_scope(process);
        let device = devices.device(process).filter(|_| dur_ns.is_none());
        let device = device.map_or(0, number);
        let numbers = scope.into_iter().flat_map(|scope| (scope..).zip(NUMBERS));
        numbers.filter_map(move |(seed, name)| {
            let launch = arg(event, name)?;
            (!NO_NUMBERS.contains(&launch)).then(|| LaunchEnd {
                key: xxh3_64_with_seed(&launch.to_le_bytes(), seed),
                is_work: dur_ns.is_none(),
                ns: event.ts_ns,
                dur_ns: dur_ns.unwrap_or(-1),
                device,
                stream: number(event.thread),
            })
        })
    }
}

impl Record for LaunchEnd {}

/// A collective on one device. Sorting puts the devices of one collective next to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CollectiveRecord {
    pub(crate) key: CollectiveKey,
    /// By the number of its process.
    pub(crate) device: u32,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
}

impl CollectiveRecord {
    pub(crate) fn new(key: CollectiveKey, of: &DeviceSlice) -> CollectiveRecord {
        CollectiveRecord {
            key,
            device: of.device,
            start_ns: of.start_ns,
            end_ns: of.end_ns.0,
        }
    }
}

impl Record for CollectiveRecord {}
