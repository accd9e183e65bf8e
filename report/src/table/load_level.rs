//! How much there was to do.

use serde::Serialize;

/// What a level is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadKind {
    /// Requests between arrival and end.
    UnderWay,
    /// Requests in the batches of an engine.
    Running,
    /// Requests that wait in an engine.
    Waiting,
    /// Used room for keys and values of an engine, in percent.
    KvUsedPercent,
}

/// How high a level was, weighted by time: half of the time it was at most `p50`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadLevel {
    /// What it is of.
    pub of: LoadKind,
    /// The engine, by its number among the processes; of all requests none.
    pub process: Option<usize>,
    /// From the first time at which it is known to the last, in ns.
    pub wall_ns: i64,
    /// The mean over this time.
    pub mean: f64,
    /// See there.
    pub p50: f64,
    /// See there.
    pub p90: f64,
    /// See there.
    pub p99: f64,
    /// The highest one.
    pub max: f64,
}
