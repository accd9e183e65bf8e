//! How busy a device was, and each of its streams.

use crate::quantiles::Quantiles;
use serde::Serialize;

/// How busy a device was, or another group of tracks: between the begin of its first slice and the end of its last one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceTime {
    /// It, by its number among [`Recorded::processes`](crate::Recorded::processes).
    pub process: usize,
    /// True for a worker without device rows, whose steps are counted instead. The JSON has those in `worker`.
    #[serde(skip)]
    pub is_runner: bool,
    /// Slices.
    pub slices: u64,
    /// Those that took less time than their launch took the host, where that is known: each costs more than it does.
    pub short_slices: u64,
    /// How long slices were launched before they began, where that is known.
    pub launch_delay: Quantiles,
    /// Slices that begin before their launch, because of an error of the clocks. Their delay counts as 0.
    pub early_slices: u64,
    /// The most by which one of them begins before its launch.
    pub early_ns: i64,
    /// When the first one began, in ns from the begin of the trace, and how long it is from there to the end of the last one.
    pub from_ns: i64,
    /// See there.
    pub wall_ns: i64,
    /// Time in which any slice ran, on whichever row.
    pub busy_ns: i64,
    /// Time in which communication ran.
    pub communication_ns: i64,
    /// Time in which communication ran, and nothing else.
    pub exposed_communication_ns: i64,
    /// The longest time in which nothing ran, and when that began.
    pub longest_gap_ns: i64,
    /// See there.
    pub longest_gap_at_ns: i64,
}

/// How busy a stream of a device was, or another row of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamTime {
    /// The device, by its number among [`Recorded::processes`](crate::Recorded::processes).
    pub process: usize,
    /// As the trace calls the row.
    pub name: String,
    /// Slices on it.
    pub slices: u64,
    /// The replays of a graph among them.
    pub replays: u64,
    /// Time in which one of them ran.
    pub busy_ns: i64,
    /// Average number of launched slices that were still waiting, over the device's time, for slices with a known launch.
    pub mean_queue: Option<f64>,
    /// The most of them, as a launch found it: itself counts, and 65,536 are counted at most.
    pub max_queue: Option<u64>,
}
