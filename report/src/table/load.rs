//! The load: over time, in spikes, in the steps of engines, and how the times of requests grow with it.

use super::run_diff::Metric;
use serde::Serialize;

/// A quantity that changes during a run.
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
    /// The quantity.
    pub of: SeriesKind,
    /// The engine, device or worker, by its number among the processes; of all none.
    pub process: Option<usize>,
    /// One value for each part: the longest step, or else the mean. `None` where the value is unknown.
    pub values: Vec<Option<f64>>,
}

/// The changes during a run, in equal parts of its time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Timeline {
    /// Start of the first part, in ns from the start of the trace.
    pub from_ns: i64,
    /// Duration of each part, in ns.
    pub part_ns: i64,
    /// Series that are left out: a kind has at most 64.
    pub left_out: usize,
    /// The series.
    pub series: Vec<Series>,
}

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
    /// The level was at most this for half of the time.
    pub p50: f64,
    /// The level was at most this for 90 % of the time.
    pub p90: f64,
    /// The level was at most this for 99 % of the time.
    pub p99: f64,
    /// The highest one.
    pub max: f64,
}

/// The times with unusually many requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spikes {
    /// Number of all spikes.
    pub n: u64,
    /// The ten longest, in the order of time.
    pub longest: Vec<Spike>,
}

/// A time in which more requests were under way than in nine tenths of the run: from the first that was too many until there were no more than in half of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spike {
    /// Start, in ns from the start of the trace.
    pub start_ns: i64,
    /// Duration, in ns. A spike that does not end counts up to the end of the last request.
    pub dur_ns: i64,
    /// The most requests at once.
    pub peak: u64,
    /// Requests that were under way in it, at any time.
    pub requests: u64,
    /// Mean time from arrival to end of the requests in the spike, in ns. Requests without both times are left out.
    pub e2e_mean_ns: Option<f64>,
    /// The same mean for all other requests.
    pub others_e2e_mean_ns: Option<f64>,
    /// The ids of the first hundred that were under way in it, by arrival.
    pub request_ids: Vec<String>,
}

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
    /// The objective that `--slo` sets for this time, in ns.
    pub target_ns: Option<i64>,
    /// Up to how many requests at once the line keeps `target_ns`, never more than the highest point has. `None` without an objective or without advice.
    pub concurrency: Option<u64>,
    /// True if the line still meets `target_ns` at the highest point. The trace says nothing about higher numbers.
    pub is_beyond: bool,
}

/// Requests that were under way with about as many others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SizingPoint {
    /// Mean number of requests that were under way at once.
    pub concurrency: f64,
    /// Number of requests in the point.
    pub requests: u64,
    /// Their time, in ns: 95 in 100 took at most this.
    pub p95_ns: f64,
}

/// `p95 = intercept + slope × concurrency`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SizingFit {
    /// The time that one more request at once adds, in ns.
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
    /// The points are too far from the line.
    NotLinear,
    /// The time does not grow with the number.
    NotRising,
}

/// The contents of an engine's steps, from its counters `tokens` and `speculation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Batching {
    /// The engine, by its number among the processes.
    pub process: usize,
    /// Steps.
    pub steps: u64,
    /// Tokens of prompts in all steps together.
    pub prefill_tokens: u64,
    /// Tokens of answers.
    pub decode_tokens: u64,
    /// Steps that had both.
    pub mixed_steps: u64,
    /// Steps that had answers but no prompt, and whose duration is known.
    pub decode_steps: u64,
    /// Mean duration of `decode_steps`, from the output of the previous step to their own, in ns.
    pub decode_step_ns: f64,
    /// Mean duration of steps with both, in ns. The excess over `decode_step_ns` is the time that a prompt adds between the tokens of other requests.
    pub mixed_step_ns: f64,
    /// Tokens that were speculated.
    pub drafted_tokens: u64,
    /// Speculated tokens that were right.
    pub accepted_tokens: u64,
}

impl Batching {
    /// Returns the time that a prompt adds to a step, in ns, and its share of the time of answers. Returns `None` if a duration is unknown.
    pub fn stall(&self) -> Option<(f64, f64)> {
        let is_known = self.decode_step_ns > 0.0 && self.mixed_step_ns > 0.0;
        let more_ns = self.mixed_step_ns - self.decode_step_ns;
        let (mixed_steps, decode_steps) = (self.mixed_steps as f64, self.decode_steps as f64);
        let all_ns = mixed_steps * self.mixed_step_ns + decode_steps * self.decode_step_ns;
        is_known.then(|| (more_ns, mixed_steps * more_ns / all_ns))
    }
}
