//! How much there was to do.

use super::timeline::SeriesKind;
use serde::Serialize;

/// How high a level was, weighted by time: half of the time it was at most `p50`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadLevel {
    /// The kind of the level: requests under way, running or waiting, or the used room for keys and values.
    pub of: SeriesKind,
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
