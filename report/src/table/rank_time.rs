//! How a device came to collectives.

use serde::Serialize;

/// How a device came to the collectives of its engine. A collective is the nth of its kind and communicator on each device.
///
/// The clocks of two hosts are compared only where they are more apart than both may be off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RankTime {
    /// The device, by its number among the processes.
    pub process: usize,
    /// The engine, where one is known.
    pub engine: Option<usize>,
    /// Collectives in which all devices of the engine took part.
    pub collectives: u64,
    /// Collectives in which it is unknown who was last, because the clocks may be off by more than the last one was late.
    pub undecided: u64,
    /// Uncertainty between its clock and the other clocks, in ns: 0 on one host, `null` if unknown.
    pub uncertainty_ns: Option<u64>,
    /// Collectives that it certainly began last.
    pub last: u64,
    /// Of how many of those it came so late that it does not belong to the others: Dixon's test at 99 % for 3 to 10 devices, three standard deviations for more.
    pub outlier: u64,
    /// Total time by which it was later than the last but one: what the others would gain if it had come with them. For each collective at most the duration
    /// of the last but one's part.
    pub late_ns: i64,
    /// Total time that it waited for the last one; for each collective at most the duration of its own part.
    pub waited_ns: i64,
}
