//! A comparison of two groups of runs, and the figures of requests that it is based on.

use super::devices::IdleCause;
use super::names::RowKind;
use super::request::Request;
use crate::quantiles::Quantiles;
use serde::Serialize;

/// Two sides of one or more runs: `one` is the first, `other` the second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunDiff {
    /// Version of the schema of this.
    pub schema: u32,
    /// Runs of each.
    pub runs: (usize, usize),
    /// Requests of each.
    pub requests: (u64, u64),
    /// Requests answered in a second of the mean run.
    pub requests_per_s: (Option<f64>, Option<f64>),
    /// Their tokens in a second.
    pub output_tokens_per_s: (Option<f64>, Option<f64>),
    /// The figures of the requests.
    pub metrics: Vec<MetricDiff>,
    /// What devices waited for, that which grew most first.
    pub idle: Vec<IdleDiff>,
    /// The names, those whose time changed most first.
    pub names: Vec<NameDiff>,
}

/// A figure of the requests of two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricDiff {
    /// The figure.
    pub metric: Metric,
    /// In the first run.
    pub one: Quantiles,
    /// In the second run.
    pub other: Quantiles,
    /// The second mean by the first one.
    pub ratio: Option<f64>,
    /// Where this ratio lies with 95 % (bootstrap).
    pub ratio_interval: Option<(f64, f64)>,
    /// The probability of such a difference between two samples of one population (Mann-Whitney, corrected for requests that waited for one another).
    pub p_value: Option<f64>,
}

impl MetricDiff {
    /// Whether both tests tell the runs apart.
    pub fn is_clear(&self) -> bool {
        let is_apart = |(low, high): (f64, f64)| low > 1.0 || high < 1.0;
        self.ratio_interval.is_some_and(is_apart) && self.p_value.is_some_and(|p| p < 0.05)
    }
}

/// A cause of idle devices in two runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct IdleDiff {
    /// The cause.
    pub cause: IdleCause,
    /// Its share of the devices' time in the first run.
    pub one: f64,
    /// And in the second.
    pub other: f64,
}

/// A name in two runs. What is `None` is in the other one alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NameDiff {
    /// The kind of row that its slices are on.
    pub row_kind: RowKind,
    /// Its category.
    pub category: String,
    /// The name.
    pub name: String,
    /// In the first run.
    pub one: Option<NameFigures>,
    /// In the second run.
    pub other: Option<NameFigures>,
}

/// The time of a name.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NameFigures {
    /// Slices.
    pub ncall: u64,
    /// Time by itself.
    pub tsub_ns: i64,
    /// Time with what lies in it.
    pub ttot_ns: i64,
    /// Mean duration.
    pub mean_ns: f64,
    /// 95 in 100 durations are at most this.
    pub p95_ns: f64,
}

impl NameDiff {
    /// How much more time by itself it takes in the second run.
    pub fn more_ns(&self) -> i64 {
        let of = |figures: Option<NameFigures>| figures.map_or(0, |figures| figures.tsub_ns);
        of(self.other).saturating_sub(of(self.one))
    }
}

named_enum! {
    /// A figure of a request.
    pub Metric {
        /// [`Request::queue_ns`].
        Queue = "queue",
        /// [`Request::prefill_ns`].
        Prefill = "prefill",
        /// [`Request::decode_ns`].
        Decode = "decode",
        /// [`Request::engine_ttft_ns`].
        EngineTtft = "engine_ttft",
        /// [`Request::ttft_ns`].
        Ttft = "ttft",
        /// [`Request::tpot_ns`].
        Tpot = "tpot",
        /// The times between tokens of all requests together.
        Itl = "itl",
        /// [`Request::e2e_ns`] of answered requests.
        E2e = "e2e",
    }
}

impl Metric {
    /// Returns the figure of one request. Times between tokens have no such figure, only one for all requests.
    pub(crate) fn of(self, request: &Request) -> Option<i64> {
        match self {
            Metric::Queue => request.queue_ns(),
            Metric::Prefill => request.prefill_ns(),
            Metric::Decode => request.decode_ns(),
            Metric::EngineTtft => request.engine_ttft_ns(),
            Metric::Ttft => request.ttft_ns(),
            Metric::Tpot => request.tpot_ns(),
            Metric::Itl => None,
            Metric::E2e => request.answered_e2e_ns(),
        }
    }
}
