//! The answer to "What changed?": the biggest change that users feel, and its cause.

use super::devices::IdleCause;
use super::run_diff::{IdleDiff, LoadDiff, Metric, PartDiff, SettingDiff};
use super::verdict::VerdictRule;
use serde::Serialize;
use trace_merge::Exit;

/// The biggest change that users feel.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Headline {
    /// Runs of only one side crashed.
    Crash(CrashedSide),
    /// The share of requests that were answered changed.
    Answered,
    /// A figure of the requests changed.
    Figure(FigureChange),
    /// The figure that changed most changed by less than 5 %.
    SmallChange(FigureChange),
    /// No figure of the requests changed more than chance explains.
    NoChange,
    /// A side has too few answered requests for a test.
    FewRequests,
    /// A side has no requests.
    NoRequests,
}

/// The process that was killed first in the runs of one side, if no process was killed in the runs of the other side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CrashedSide {
    /// True for the second side.
    pub is_second: bool,
    /// Name of the process that died first.
    pub process: String,
    /// Exit of the process as reported by the program that waited for it, if any.
    pub exit: Option<Exit>,
    /// Step during which it died.
    pub step: Option<String>,
    /// Number of requests that it was working on.
    pub requests: u64,
}

named_enum! {
    /// Statistic of a figure.
    pub HeadlineStatistic {
        /// The median.
        P50 = "p50",
        /// The mean, for changes that the median does not show.
        Mean = "mean",
    }
}

/// A change of a request figure, and its cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureChange {
    /// The figure that changed.
    pub metric: Metric,
    /// The statistic that shows the change.
    pub statistic: HeadlineStatistic,
    /// Value in the first run, in ns.
    pub one_ns: f64,
    /// Value in the second run, in ns.
    pub other_ns: f64,
    /// Part of the requests' time that changed most, if it accounts for at least half of the change.
    pub part: Option<PartDiff>,
    /// A change of the runs that may be the cause.
    pub cause: Option<ChangeCause>,
}

/// A change of the runs that may be the cause of another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangeCause {
    /// True if the change is known to act on the part of the time that changed. False if it happened at the same time
    /// but may be unrelated.
    pub explains: bool,
    /// The change.
    #[serde(flatten)]
    pub change: Change,
}

/// A change of the runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// A setting of the engines.
    Setting(SettingDiff),
    /// A load figure.
    Load(LoadDiff),
    /// The verdict on the run.
    Verdict {
        /// Verdict on the first run.
        one: VerdictRule,
        /// Verdict on the second run.
        other: VerdictRule,
    },
    /// The share of an idle cause.
    Idle(IdleDiff),
    /// The mean duration of work on devices.
    Name {
        /// Name of the work.
        name: String,
        /// Mean duration in the first run, in ns.
        one_ns: f64,
        /// Mean duration in the second run, in ns.
        other_ns: f64,
    },
}

impl IdleCause {
    /// Returns false for causes that no server can improve: no request, lost events, and unknown.
    pub(crate) fn is_server_side(self) -> bool {
        !matches!(
            self,
            IdleCause::NoRequest | IdleCause::NotRecorded | IdleCause::Unknown
        )
    }
}
