//! A comparison of two groups of runs, and the figures of requests that it is based on.

use super::devices::IdleCause;
use super::diff_headline::Headline;
use super::names::RowKind;
use super::request::Request;
use super::verdict::VerdictRule;
use crate::statistics::quantiles::Quantiles;
use serde::Serialize;
use serde_json::Value;

/// Maximum p-value of a certain difference, even if several figures are tested.
const CERTAIN: f64 = 0.001;

/// Two sides of one or more runs: `one` is the first, `other` the second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunDiff {
    /// Version of the schema of this.
    pub schema: u32,
    /// The biggest change that users feel, and its cause.
    pub headline: Headline,
    /// Number of runs of each side.
    pub runs: (usize, usize),
    /// Length of the mean run, in ns: the time that its figures are about.
    pub wall_ns: (f64, f64),
    /// The verdicts on the runs of each side, without repetitions.
    pub verdicts: (Vec<VerdictRule>, Vec<VerdictRule>),
    /// The settings of the engines. `None` if a side has none.
    pub settings: Option<SettingDiffs>,
    /// Number of requests of each side.
    pub requests: (u64, u64),
    /// Number of these requests that were answered.
    pub answered: (u64, u64),
    /// Requests of the mean run that were answered per second.
    pub requests_per_s: (Option<f64>, Option<f64>),
    /// Output tokens of these requests per second.
    pub output_tokens_per_s: (Option<f64>, Option<f64>),
    /// The load of the mean run.
    pub load: Vec<LoadDiff>,
    /// The figures of the requests.
    pub metrics: Vec<MetricDiff>,
    /// The parts of the time of the mean request, in order.
    pub parts: Vec<PartDiff>,
    /// Share of the devices' time in which they worked.
    pub busy: (Option<f64>, Option<f64>),
    /// The causes of idle devices. The one that grew most comes first.
    pub idle: Vec<IdleDiff>,
    /// The names. The one whose time changed most comes first.
    pub names: Vec<NameDiff>,
}

/// The settings of two runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SettingDiffs {
    /// Number of settings that are the same.
    pub same: usize,
    /// The settings that differ, by name.
    pub different: Vec<SettingDiff>,
}

/// A setting that differs between two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettingDiff {
    /// The name.
    pub name: String,
    /// Its values in the first run, without repetitions. Engines may differ, and some may lack it.
    pub one: Vec<Value>,
    /// Its values in the second run.
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
        /// Mean number of waiting requests of an engine.
        WaitingMean = "waiting_mean",
        /// Maximum number of waiting requests of an engine.
        WaitingMax = "waiting_max",
        /// Mean use of the KV cache of an engine, in percent.
        KvUsedMean = "kv_used_mean",
        /// Maximum use of the KV cache of an engine, in percent.
        KvUsedMax = "kv_used_max",
        /// Mean number of tokens of a prompt.
        PromptTokens = "prompt_tokens",
        /// Mean number of tokens of a prompt that the prefix cache did not have.
        UncachedTokens = "uncached_tokens",
        /// Mean number of tokens of an answer.
        OutputTokens = "output_tokens",
    }
}

/// A figure of the load in two runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LoadDiff {
    /// The figure.
    pub of: LoadFigure,
    /// Its value in the first run.
    pub one: Option<f64>,
    /// Its value in the second run.
    pub other: Option<f64>,
}

/// A part of the time of the mean request in two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartDiff {
    /// The name, as in [`RequestPart`](crate::RequestPart).
    pub name: String,
    /// Its time in the first run, in ns. `None` if that run does not have this part.
    pub one_ns: Option<f64>,
    /// Its time in the second run, in ns.
    pub other_ns: Option<f64>,
}

impl PartDiff {
    /// Returns the additional time in the second run; `None` if a run does not have the part.
    pub fn more_ns(&self) -> Option<f64> {
        Some(self.other_ns? - self.one_ns?)
    }
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
    /// The 95 % confidence interval of this ratio (bootstrap).
    pub ratio_interval: Option<(f64, f64)>,
    /// The probability of such a difference between two samples of one population (Mann-Whitney, corrected for requests that waited for one another, unless these came in a closed loop).
    pub p_value: Option<f64>,
}

impl MetricDiff {
    /// Returns true if the runs differ by both tests.
    pub fn is_clear(&self) -> bool {
        self.is_apart(0.05)
    }

    /// Returns true if they differ beyond what chance explains, although several figures are tested.
    pub fn is_certain(&self) -> bool {
        self.is_apart(CERTAIN)
    }

    fn is_apart(&self, most_probable: f64) -> bool {
        let is_apart = |(low, high): (f64, f64)| low > 1.0 || high < 1.0;
        let is_improbable = |p: f64| p < most_probable;
        self.ratio_interval.is_some_and(is_apart) && self.p_value.is_some_and(is_improbable)
    }

    /// Returns the increase of the mean in the second run; `None` if a run does not have the figure.
    pub fn more_ns(&self) -> Option<f64> {
        (self.one.n > 0 && self.other.n > 0).then_some(self.other.mean_ns - self.one.mean_ns)
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
