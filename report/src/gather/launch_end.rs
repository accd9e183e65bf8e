//! One side of a launch: the call on the host, or the work of a device.

use super::chunk_facts::number;
use sa_format::Phase;
use trace_merge::events::{Devices, PlacedEvent};
use trace_store::sorter::Record;
use xxhash_rust::xxh3::xxh3_64_with_seed;

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
        numbers.filter_map(move |(seed, arg)| {
            let launch: u64 = serde_json::from_slice(event.arg(arg)?).ok()?;
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
