//! What changed while the run went on.

use serde::Serialize;

/// What a series is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SeriesKind {
    /// Requests between arrival and end.
    UnderWay,
    /// Requests in the batches of an engine.
    Running,
    /// Requests that wait in an engine.
    Waiting,
    /// Used room for keys and values of an engine, in percent.
    KvUsedPercent,
    /// Tokens that were seen, a second.
    OutputTokensPerS,
    /// Time in which a device worked, in percent.
    BusyPercent,
    /// The longest step that ended, in ns.
    LongestStepNs,
}

/// Values that follow each other, one for each part of the time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// What it is of.
    pub of: SeriesKind,
    /// The engine, device or worker, by its number among the processes; of all none.
    pub process: Option<usize>,
    /// The mean over each part of the time, of steps the longest; `None` where nothing tells.
    pub values: Vec<Option<f64>>,
}

/// What changed while the run went on, in equal parts of its time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Timeline {
    /// When the first part begins, in ns from the begin of the trace.
    pub from_ns: i64,
    /// How long each part is.
    pub part_ns: i64,
    /// Series that are left out: a kind has at most 64.
    pub left_out: usize,
    /// The series.
    pub series: Vec<Series>,
}
