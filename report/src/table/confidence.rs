//! Where the mean of a figure may lie.

use serde::Serialize;

/// What a mean is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfidenceOf {
    /// See [`Request::queue_ns`](crate::Request::queue_ns), and so on: ns.
    Queue,
    /// See there.
    Prefill,
    /// See there.
    Decode,
    /// See there.
    EngineTtft,
    /// See there.
    Ttft,
    /// See there.
    Tpot,
    /// See there.
    E2e,
    /// Requests answered in a second.
    RequestsPerS,
}

/// How an interval was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IntervalMethod {
    /// Student's t, with the standard deviation of a sample: of a mean.
    StudentT,
    /// The exact interval of a Poisson distribution (Garwood's): of a count of events that come by chance, and so of a rate.
    Poisson,
}

/// Where a mean lies with 90, 95 and 99 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Intervals {
    /// How they were found.
    pub method: IntervalMethod,
    /// From and to, with 90 %.
    pub p90: [f64; 2],
    /// With 95 %.
    pub p95: [f64; 2],
    /// With 99 %.
    pub p99: [f64; 2],
}

/// A mean, and how little it may say.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Confidence {
    /// What it is of, and with that its unit.
    pub of: ConfidenceOf,
    /// How many values there are.
    pub n: u64,
    /// Their mean.
    pub mean: f64,
    /// `None` of a single value, which says nothing of how others scatter.
    pub intervals: Option<Intervals>,
}
