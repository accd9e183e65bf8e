//! A comparison of two groups of runs, and the request figures that it is based on.

use super::devices::IdleCause;
use super::diff_headline::Headline;
use super::names::RowKind;
use super::request::Request;
use super::verdict::VerdictRule;
use crate::statistics::quantiles::Quantiles;
use serde::Serialize;
use serde_json::Value;

/// Maximum p-value of a certain difference. It is low because several figures are tested.
const CERTAIN: f64 = 0.001;

/// Comparison of two sides of one or more runs each. `one` is the first side, `other` the second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunDiff {
    /// Version of the schema of this struct.
    pub schema: u32,
    /// Biggest change that users feel, and its cause.
    pub headline: Headline,
    /// Number of runs of each side.
    pub runs: (usize, usize),
    /// Mean length of the time that the figures cover, in ns.
    pub wall_ns: (f64, f64),
    /// Distinct verdicts on the runs of each side.
    pub verdicts: (Vec<VerdictRule>, Vec<VerdictRule>),
    /// Settings of the engines. `None` if a side has none.
    pub settings: Option<SettingDiffs>,
    /// Number of requests of each side.
    pub requests: (u64, u64),
    /// Number of these requests that were answered.
    pub answered: (u64, u64),
    /// Mean over the runs of the answered requests per second.
    pub requests_per_s: (Option<f64>, Option<f64>),
    /// Output tokens of these requests per second.
    pub output_tokens_per_s: (Option<f64>, Option<f64>),
    /// Load, as means over the runs.
    pub load: Vec<LoadDiff>,
    /// Figures of the requests.
    pub metrics: Vec<MetricDiff>,
    /// Parts of the time of the mean request, in order.
    pub parts: Vec<PartDiff>,
    /// Share of the devices' time in which they were busy.
    pub busy: (Option<f64>, Option<f64>),
    /// Causes of idle devices. The one that grew most comes first.
    pub idle: Vec<IdleDiff>,
    /// Names. The one whose time changed most comes first.
    pub names: Vec<NameDiff>,
}

/// Settings of two runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SettingDiffs {
    /// Number of settings that are equal.
    pub same: usize,
    /// Settings that differ, by name.
    pub different: Vec<SettingDiff>,
}

/// A setting that differs between two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettingDiff {
    /// Name of the setting.
    pub name: String,
    /// Distinct values in the first run. Engines may differ, and some may lack the setting.
    pub one: Vec<Value>,
    /// Distinct values in the second run.
    pub other: Vec<Value>,
}

named_enum! {
    /// A figure of the load.
    pub LoadFigure {
        /// Requests that arrive per second, from the first one to the last.
        ArrivalsPerS = "arrivals_per_s",
        /// Mean number of requests in flight.
        InFlightMean = "in_flight_mean",
        /// Maximum number of requests in flight.
        InFlightMax = "in_flight_max",
        /// Mean number of running requests of an engine.
        RunningMean = "running_mean",
        /// Maximum number of running requests of an engine.
        RunningMax = "running_max",
        /// Mean number of queued requests of an engine.
        WaitingMean = "waiting_mean",
        /// Maximum number of queued requests of an engine.
        WaitingMax = "waiting_max",
        /// Mean KV cache use of an engine, in percent.
        KvUsedMean = "kv_used_mean",
        /// Maximum KV cache use of an engine, in percent.
        KvUsedMax = "kv_used_max",
        /// Mean number of prompt tokens.
        PromptTokens = "prompt_tokens",
        /// Mean number of prompt tokens that were not in the prefix cache.
        UncachedTokens = "uncached_tokens",
        /// Mean number of output tokens.
        OutputTokens = "output_tokens",
    }
}

/// A load figure in two runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LoadDiff {
    /// Kind of figure.
    pub of: LoadFigure,
    /// Value in the first run.
    pub one: Option<f64>,
    /// Value in the second run.
    pub other: Option<f64>,
}

/// A part of the time of the mean request in two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartDiff {
    /// Name of the part, as in [`RequestPart`](crate::RequestPart).
    pub name: String,
    /// Time in the first run, in ns. `None` if that run does not have this part.
    pub one_ns: Option<f64>,
    /// Time in the second run, in ns.
    pub other_ns: Option<f64>,
}

impl PartDiff {
    /// Returns the additional time of this part in the second run, in ns, or `None` if a run does not have the part.
    pub fn more_ns(&self) -> Option<f64> {
        Some(self.other_ns? - self.one_ns?)
    }
}

/// A request figure in two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricDiff {
    /// Kind of figure.
    pub metric: Metric,
    /// Distribution in the first run.
    pub one: Quantiles,
    /// Distribution in the second run.
    pub other: Quantiles,
    /// Ratio of the second mean to the first one.
    pub ratio: Option<f64>,
    /// 95 % confidence interval of this ratio (bootstrap).
    pub ratio_interval: Option<(f64, f64)>,
    /// Probability of such a difference between two samples of one population. It is Mann-Whitney's, corrected for
    /// requests that waited for each other unless they arrived in a closed loop.
    pub p_value: Option<f64>,
}

impl MetricDiff {
    /// Returns true if both tests show a difference between the runs: the confidence interval of the ratio excludes 1,
    /// and the p-value is below 5 %.
    pub fn is_clear(&self) -> bool {
        self.is_apart(0.05)
    }

    /// Returns true if the runs differ in this figure more than chance explains, although several figures are tested.
    pub fn is_certain(&self) -> bool {
        self.is_apart(CERTAIN)
    }

    /// Returns true if the ratio's confidence interval excludes 1 and the p-value is below `most_probable`.
    fn is_apart(&self, most_probable: f64) -> bool {
        let is_apart = |(low, high): (f64, f64)| low > 1.0 || high < 1.0;
        let is_improbable = |p: f64| p < most_probable;
        self.ratio_interval.is_some_and(is_apart) && self.p_value.is_some_and(is_improbable)
    }

    /// Returns the increase of the mean from the first to the second run in ns, or `None` if a run does not have the
    /// figure.
    pub fn more_ns(&self) -> Option<f64> {
        (self.one.n > 0 && self.other.n > 0).then_some(self.other.mean_ns - self.one.mean_ns)
    }
}

/// An idle cause in two runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct IdleDiff {
    /// Cause of the idle time.
    pub cause: IdleCause,
    /// Share of the devices' time in the first run.
    pub one: f64,
    /// Share of the devices' time in the second run.
    pub other: f64,
}

/// A name in two runs. Figures are `None` if that run does not have the name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NameDiff {
    /// Kind of track that the slices are on.
    pub row_kind: RowKind,
    /// Category of the slices.
    pub category: String,
    /// Name of the slices.
    pub name: String,
    /// Figures in the first run.
    pub one: Option<NameFigures>,
    /// Figures in the second run.
    pub other: Option<NameFigures>,
}

/// Times of a name, as means over the runs of a side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NameFigures {
    /// Number of slices.
    pub ncall: u64,
    /// Self time, in ns.
    pub tsub_ns: i64,
    /// Time including inner slices, in ns.
    pub ttot_ns: i64,
    /// Mean duration, in ns.
    pub mean_ns: f64,
    /// 95th percentile of the duration, in ns.
    pub p95_ns: f64,
}

impl NameDiff {
    /// Returns the additional self time in the second run, in ns.
    pub fn more_ns(&self) -> i64 {
        let self_ns = |figures: Option<NameFigures>| figures.map_or(0, |figures| figures.tsub_ns);
        self_ns(self.other).saturating_sub(self_ns(self.one))
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
        /// Times between tokens, of all requests together.
        Itl = "itl",
        /// [`Request::e2e_ns`] of answered requests.
        E2e = "e2e",
    }
}

impl Metric {
    /// Returns this figure of one request in ns, or `None` if it is unknown. It is always `None` for ITL, which is a
    /// figure of all requests together.
    pub(crate) fn value(self, request: &Request) -> Option<i64> {
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
