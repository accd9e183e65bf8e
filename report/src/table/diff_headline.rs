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
    /// No figure of the requests changed beyond what chance explains.
    NoChange,
    /// A side has too few answered requests for a test.
    FewRequests,
    /// A side has no requests.
    NoRequests,
}

/// The process that was killed first in the runs of a side. No process was killed in the runs of the other side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CrashedSide {
    /// True for the second side.
    pub is_second: bool,
    /// The process that died first.
    pub process: String,
    /// Its exit as seen by the program that waited for it, if any.
    pub exit: Option<Exit>,
    /// The step during which it died.
    pub step: Option<String>,
    /// Number of requests that it was working on.
    pub requests: u64,
}

named_enum! {
    /// A statistic of a figure.
    pub HeadlineStatistic {
        /// The median.
        P50 = "p50",
        /// The mean, for changes that the median does not show.
        Mean = "mean",
    }
}

/// A figure of the requests that changed, and its cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureChange {
    /// The figure.
    pub metric: Metric,
    /// The statistic that shows the change.
    pub statistic: HeadlineStatistic,
    /// Its value in the first run, in ns.
    pub one_ns: f64,
    /// Its value in the second run, in ns.
    pub other_ns: f64,
    /// The part of the requests' time that changed most, if it makes up at least half of the change.
    pub part: Option<PartDiff>,
    /// A change of the runs that may be the cause.
    pub cause: Option<ChangeCause>,
}

/// A change of the runs that may be the cause of another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangeCause {
    /// True if it is known to act on the part of the time that changed. False if it also happened, but may have nothing to do with it.
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
    /// A figure of the load.
    Load(LoadDiff),
    /// The verdict on the run.
    Verdict {
        /// In the first run.
        one: VerdictRule,
        /// In the second run.
        other: VerdictRule,
    },
    /// A cause of idle devices.
    Idle(IdleDiff),
    /// The mean duration of work on devices.
    Name {
        /// The name.
        name: String,
        /// In the first run, in ns.
        one_ns: f64,
        /// In the second run, in ns.
        other_ns: f64,
    },
}

impl IdleCause {
    /// Returns false for causes that are not work of a server: no request, lost events, and unknown ones.
    pub(crate) fn is_of_server(self) -> bool {
        !matches!(
            self,
            IdleCause::NoRequest | IdleCause::NotRecorded | IdleCause::Unknown
        )
    }
}
