//! Load over time, in spikes, and in the steps of engines, and how the times of requests grow with it.

use super::run_diff::Metric;
use serde::Serialize;

/// A quantity that changes during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SeriesKind {
    /// Number of requests in flight.
    #[serde(rename = "under_way")]
    InFlight,
    /// Number of running requests of an engine.
    Running,
    /// Number of queued requests of an engine.
    Waiting,
    /// KV cache use of an engine, in percent.
    KvUsedPercent,
    /// Output tokens per second.
    OutputTokensPerS,
    /// Time in which a device was busy, in percent.
    BusyPercent,
    /// Longest step that ended, in ns.
    LongestStepNs,
}

/// Values of one quantity, one for each part of the time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// Quantity of the series.
    pub of: SeriesKind,
    /// Number of the engine, device or worker among the processes. `None` for a quantity of the whole run.
    pub process: Option<usize>,
    /// Values, one for each part: the longest step, or else the mean. `None` if the value is unknown.
    pub values: Vec<Option<f64>>,
}

/// Changes during a run, in equal parts of its time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Timeline {
    /// Start of the first part, in ns from the start of the trace.
    pub from_ns: i64,
    /// Duration of each part, in ns.
    pub part_ns: i64,
    /// Number of series that are left out. There are at most 64 of each kind.
    pub left_out: usize,
    /// The series.
    pub series: Vec<Series>,
}

/// Distribution of a level, weighted by time: for half of the time, it was at most `p50`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadLevel {
    /// Kind of the level: requests in flight, running or queued, or KV cache use.
    pub of: SeriesKind,
    /// Number of the engine among the processes. `None` for all requests.
    pub process: Option<usize>,
    /// Time from the first to the last known value, in ns.
    pub wall_ns: i64,
    /// Mean over this time.
    pub mean: f64,
    /// The level was at most this for half of the time.
    pub p50: f64,
    /// The level was at most this for 90 % of the time.
    pub p90: f64,
    /// The level was at most this for 99 % of the time.
    pub p99: f64,
    /// Maximum of the level.
    pub max: f64,
}

/// Times with unusually many requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spikes {
    /// Number of all spikes.
    pub n: u64,
    /// The ten longest spikes, in order of time.
    pub longest: Vec<Spike>,
}

/// A time in which more requests were in flight than in nine tenths of the run. It starts when there are too many, and
/// ends when there are no more than in half of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spike {
    /// Start, in ns from the start of the trace.
    pub start_ns: i64,
    /// Duration, in ns. A spike that does not end lasts until the end of the last request.
    pub dur_ns: i64,
    /// Maximum number of requests at once.
    pub peak: u64,
    /// Number of requests that were in flight at any time of the spike.
    pub requests: u64,
    /// Mean E2E of the requests in the spike, in ns. Requests without an arrival or an end are left out.
    pub e2e_mean_ns: Option<f64>,
    /// Mean E2E of all other requests, in ns.
    pub others_e2e_mean_ns: Option<f64>,
    /// Ids of the first hundred requests of the spike, by arrival.
    pub request_ids: Vec<String>,
}

/// How a time of requests grows with the number in flight: points, a line through them, and its result for an
/// objective.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sizing {
    /// Time that is measured.
    pub of: Metric,
    /// Points in ascending order of concurrency.
    pub points: Vec<SizingPoint>,
    /// Number of requests that are not in any point, because too few requests had the same concurrency.
    pub left_out: u64,
    /// Least-squares line through the points, or `None` for fewer than two points.
    pub fit: Option<SizingFit>,
    /// Reason why the line gives no advice, or `None` if it does.
    pub refused: Option<SizingRefusal>,
    /// Objective that `--slo` sets for this time, in ns.
    pub target_ns: Option<i64>,
    /// Maximum number of requests in flight for which the line meets `target_ns`, limited to the highest point. `None`
    /// without an objective or without advice.
    pub concurrency: Option<u64>,
    /// True if the line still meets `target_ns` at the highest point. The trace contains no data on higher numbers.
    pub is_beyond: bool,
}

/// Requests with about the same number of others in flight.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SizingPoint {
    /// Mean number of requests in flight.
    pub concurrency: f64,
    /// Number of requests in the point.
    pub requests: u64,
    /// 95th percentile of their time, in ns.
    pub p95_ns: f64,
}

/// `p95 = intercept + slope × concurrency`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SizingFit {
    /// Time that each additional request adds, in ns.
    pub slope_ns: f64,
    /// Time at a concurrency of 0, in ns.
    pub intercept_ns: f64,
    /// Share of the points' variance that the line explains, or 0 if they have no variance.
    pub r_squared: f64,
}

/// Reason why a line gives no advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SizingRefusal {
    /// There are too few points, because the concurrency hardly changed or there are too few requests.
    FewPoints,
    /// The points are too far from the line.
    NotLinear,
    /// The time does not grow with the number.
    NotRising,
}

/// Contents of an engine's steps, from its counters `tokens` and `speculation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Batching {
    /// Number of the engine among the processes.
    pub process: usize,
    /// Number of steps.
    pub steps: u64,
    /// Number of prompt tokens in all steps.
    pub prefill_tokens: u64,
    /// Number of decode tokens in all steps.
    pub decode_tokens: u64,
    /// Number of steps with prefill and decode.
    pub mixed_steps: u64,
    /// Number of steps that only decode and whose duration is known.
    pub decode_steps: u64,
    /// Mean duration of `decode_steps`, from the output of the previous step to their own, in ns.
    pub decode_step_ns: f64,
    /// Mean duration of steps with prefill and decode, in ns. The excess over `decode_step_ns` is the time that a
    /// prompt adds between the tokens of other requests.
    pub mixed_step_ns: f64,
    /// Number of steps that only prefill while other requests wait for their next token.
    pub prompt_steps: u64,
    /// Mean duration of `prompt_steps`, in ns.
    pub prompt_step_ns: f64,
    /// Number of speculated tokens.
    pub drafted_tokens: u64,
    /// Number of speculated tokens that were accepted.
    pub accepted_tokens: u64,
}

impl Batching {
    /// Returns the number of steps with a prompt that delay other requests.
    pub fn delaying_steps(&self) -> u64 {
        self.mixed_steps + self.prompt_steps
    }

    /// Returns the mean time in ns by which a step with a prompt delays the next tokens of other requests, and the share
    /// of these delays in the time in which requests decode. Returns `None` if a duration is unknown.
    pub fn stall(&self) -> Option<(f64, f64)> {
        let is_known = self.decode_step_ns > 0.0 && self.mixed_step_ns + self.prompt_step_ns > 0.0;
        // Only mixed steps with a known duration have a mean.
        let mixed_steps = match self.mixed_step_ns > 0.0 {
            true => self.mixed_steps as f64,
            false => 0.0,
        };
        let (prompt_steps, decode_steps) = (self.prompt_steps as f64, self.decode_steps as f64);
        let prompt_ns = prompt_steps * self.prompt_step_ns;
        let more_ns = mixed_steps * (self.mixed_step_ns - self.decode_step_ns) + prompt_ns;
        let decode_ns = mixed_steps * self.mixed_step_ns + decode_steps * self.decode_step_ns;
        is_known.then(|| {
            let mean_ns = more_ns / (mixed_steps + prompt_steps);
            (mean_ns, more_ns / (decode_ns + prompt_ns))
        })
    }
}
