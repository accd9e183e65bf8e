//! Records of device slices, launches and collectives, as they are sorted.

use super::edge::number;
use super::request_moment::arg;
use sa_format::Phase;
use std::cmp::Reverse;
use trace_merge::collective::CollectiveKey;
use trace_merge::events::{Devices, PlacedEvent};
use trace_store::sorter::Record;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Value of `launched_ns` if no launch is known.
const UNKNOWN: i64 = i64::MIN;

/// A slice on a device track, or a step or batch of a worker without a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DeviceSlice {
    /// Process number of the device.
    pub(crate) device: u32,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: Reverse<i64>,
    /// Time from the launch to the start in ns, or [`UNKNOWN`]. It is negative if the slice starts before its launch.
    launched_ns: i64,
    /// Group of a collective, or 0 for anything else.
    pub(crate) collective: u64,
    /// True if the slice moves data between devices.
    pub(crate) is_communication: bool,
    /// True if the launch took longer on the host than the slice on the device.
    pub(crate) is_short: bool,
    /// True if the slice is a graph replay.
    pub(crate) is_replay: bool,
    /// True for a part of a step of a worker without a device: the sampling, or the time in which a batch is launched and
    /// its output is not processed yet. Only the step itself is counted.
    pub(crate) is_part: bool,
    /// Thread number of the stream.
    pub(crate) stream: u32,
}

impl DeviceSlice {
    /// Creates the record of a slice of computation on a device, or of a step of a worker without a device, with its
    /// start and end in ns. Its launch is unknown.
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
            is_part: false,
            stream,
        }
    }

    /// Sets the time at which the host launched the slice, in ns.
    pub(crate) fn set_launch(&mut self, launch_ns: i64) {
        self.launched_ns = self.start_ns.saturating_sub(launch_ns);
    }

    /// Returns the time from the launch of the slice to its start in ns, or `None` if the launch is unknown. It is 0 if
    /// the slice starts before its launch.
    pub(crate) fn queue_ns(&self) -> Option<i64> {
        (self.launched_ns != UNKNOWN).then(|| self.launched_ns.max(0))
    }

    /// Returns the time in ns by which the slice seems to start before its launch, because of clock errors. It is 0 for
    /// most slices, and if the launch is unknown.
    pub(crate) fn early_ns(&self) -> i64 {
        self.queue_ns().map_or(0, |_| (-self.launched_ns).max(0))
    }

    /// Returns the launch time in ns, or the start of the slice if that is earlier. Returns `None` if the launch is
    /// unknown.
    pub(crate) fn launch_ns(&self) -> Option<i64> {
        let queue_ns = self.queue_ns()?;
        Some(self.start_ns.saturating_sub(queue_ns))
    }
}

impl Record for DeviceSlice {}

/// Args that number launches in traces of other profilers. A call and its work have the same number.
const NUMBERS: [&str; 3] = ["correlation", "correlation_id", "connection_id"];
/// Values of these args that mean no launch.
const NO_NUMBERS: [u64; 3] = [0, u32::MAX as u64, u64::MAX];

/// One side of a launch, from a flow event or an arg. Sorted, the calls of a launch come before its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LaunchEnd {
    /// Identifies the launch.
    pub(crate) key: u64,
    /// True for the work, false for the call.
    pub(crate) is_work: bool,
    /// Start time.
    pub(crate) ns: i64,
    /// Duration of a call in ns. It is −1 if unknown, and for work.
    pub(crate) dur_ns: i64,
    /// Process number of the device that did the work, or 0 for calls.
    pub(crate) device: u32,
    /// Thread number of the work's stream.
    pub(crate) stream: u32,
}

impl LaunchEnd {
    /// Returns the end of a launch, on the host or on the device, that a flow event represents. Returns `None` if the
    /// process has no [`launch_scope`](Devices::launch_scope), if the event has no id or ends a flow outside of work,
    /// or if the device of the work is unknown.
    pub(crate) fn from_flow(
        devices: &Devices,
        event: &PlacedEvent<'_>,
        process: usize,
    ) -> Option<LaunchEnd> {
        let scope = devices.launch_scope(process)?;
        let is_work = devices.shows_work(event, process);
        // Work may be at any phase, because a merge reverses arrows that end before they begin.
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

    /// Returns the ends of launches, on the host or on a device, that a span identifies by launch numbers in its args.
    /// `dur_ns` is the duration of a call in ns, or `None` for work. Returns nothing if the process has no
    /// [`launch_scope`](Devices::launch_scope).
    pub(crate) fn from_args(
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

/// A collective on one device. Sorted, the devices of one collective are adjacent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CollectiveRecord {
    pub(crate) key: CollectiveKey,
    /// Process number of the device.
    pub(crate) device: u32,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
}

impl CollectiveRecord {
    /// Creates the record of a device's part in the collective with this key. `slice` is the work on the device.
    pub(crate) fn new(key: CollectiveKey, slice: &DeviceSlice) -> CollectiveRecord {
        CollectiveRecord {
            key,
            device: slice.device,
            start_ns: slice.start_ns,
            end_ns: slice.end_ns.0,
        }
    }
}

impl Record for CollectiveRecord {}
