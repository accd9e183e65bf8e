//! How busy a stream of a device was.

use serde::Serialize;

/// How busy a stream of a device was, or another row of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamTime {
    /// The device, by its number among [`Recorded::processes`](crate::Recorded::processes).
    pub process: usize,
    /// As the trace calls the row.
    pub name: String,
    /// Slices on it.
    pub slices: u64,
    /// Those that are replays of a graph.
    pub replays: u64,
    /// Time in which one of them ran.
    pub busy_ns: i64,
    /// How many slices were launched and had not begun, on average over the device's time, where it is known when they were launched.
    pub mean_queue: Option<f64>,
    /// The most of them, as a launch found it: itself counts, and 65,536 are counted at most.
    pub max_queue: Option<u64>,
}
