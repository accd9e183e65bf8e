//! How a time of requests grows with their number at once.

use super::metric::Metric;
use serde::Serialize;

/// A time of requests against how many were under way at once: points, a line through them, and what it says of an objective.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sizing {
    /// Which time.
    pub of: Metric,
    /// The points, the lowest number at once first.
    pub points: Vec<SizingPoint>,
    /// Requests that are in no point: too few were under way with as many others.
    pub left_out: u64,
    /// The line of least squares through the points; `None` of fewer than two.
    pub fit: Option<SizingFit>,
    /// Why the line advises nothing; `None` if it does.
    pub refused: Option<SizingRefusal>,
    /// What `--slo` asks of this time, in ns.
    pub target_ns: Option<i64>,
    /// Up to how many requests at once the line keeps `target_ns`, never more than the highest point has. `None` without an objective or without advice.
    pub concurrency: Option<u64>,
    /// Whether the line keeps `target_ns` at the highest point too, beyond which nothing was seen.
    pub is_beyond: bool,
}

/// Requests that were under way with about as many others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SizingPoint {
    /// How many requests were under way at once: the mean over these.
    pub concurrency: f64,
    /// How many these are.
    pub requests: u64,
    /// Their time, in ns: 95 in 100 took at most this.
    pub p95_ns: f64,
}

/// `p95 = intercept + slope × concurrency`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SizingFit {
    /// What one request more at once costs, in ns.
    pub slope_ns: f64,
    /// In ns.
    pub intercept_ns: f64,
    /// The share of the points' variance that the line explains; 0 if they have none.
    pub r_squared: f64,
}

/// Why a line advises nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SizingRefusal {
    /// There are too few points, for the number at once hardly changed or there are too few requests.
    FewPoints,
    /// The points lie too far from the line.
    NotLinear,
    /// The time does not grow with the number.
    NotRising,
}
