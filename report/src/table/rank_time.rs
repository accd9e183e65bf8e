//! How a device came to collectives.

use serde::Serialize;

/// How a device came to the collectives of its engine. A collective is the nth of its name on each device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RankTime {
    /// The device, by its number among the processes.
    pub process: usize,
    /// The engine, where one is known.
    pub engine: Option<usize>,
    /// Collectives in which all devices of the engine took part.
    pub collectives: u64,
    /// How many of them it began last.
    pub last: u64,
    /// Of how many of those it came so late that it does not belong to the others: Dixon's test at 99 % for 3 to 10 devices, three standard deviations for more.
    pub outlier: u64,
    /// How much later than the last but one, together: what the others would gain if it had come with them.
    pub late_ns: i64,
    /// How long it waited for the last one, together.
    pub waited_ns: i64,
}
