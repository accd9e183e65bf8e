//! Changes in the activity of processes and devices, as they are sorted by time.

use crate::table::{Activity, SeriesKind};
use trace_store::sorter::Record;

/// Kind of a change. At the same time, ends come before starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EdgeKind {
    /// A process ends an activity.
    End(Activity),
    LossEnd,
    RequestEnd,
    GapEnd,
    DeviceEnd,
    /// The number of running requests in the engine changes.
    Running,
    /// The number of queued requests in the engine changes.
    Waiting,
    /// The KV cache use changes. Its value is in thousandths.
    KvUsed,
    Begin(Activity),
    LossBegin,
    RequestBegin,
    DeviceBegin,
    GapBegin,
    /// The engine hands a step to its workers, or the sampling after one.
    StepHanded,
    SampleHanded,
    /// A worker starts to sample.
    SampleBegun,
    /// The process launches work.
    Launch,
    /// The slice that ends the gap was launched.
    Launched,
}

/// A change. Activities, launches and counts belong to processes, gaps to devices, and requests to the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) ns: i64,
    pub(crate) kind: EdgeKind,
    /// Number of the process, or for a device the number of its own process.
    pub(crate) process: u32,
    /// New value of a count. At the start of a step, the number of the step plus 1, or 0 if it has none.
    pub(crate) value: u32,
}

impl EdgeKind {
    /// Returns the load figure of an engine that a change of this kind sets, for example the number of running
    /// requests, or `None` for other changes.
    pub(crate) fn level(self) -> Option<SeriesKind> {
        match self {
            EdgeKind::Running => Some(SeriesKind::Running),
            EdgeKind::Waiting => Some(SeriesKind::Waiting),
            EdgeKind::KvUsed => Some(SeriesKind::KvUsedPercent),
            _ => None,
        }
    }
}

impl Edge {
    /// Creates a change of a process at the time `ns`, with the value 0.
    pub(crate) fn new(ns: i64, kind: EdgeKind, process: u32) -> Edge {
        Edge {
            ns,
            kind,
            process,
            value: 0,
        }
    }
}

impl Record for Edge {}

/// Converts an index, such as the number of a process, to the `u32` that records use. An index that does not fit
/// becomes `u32::MAX`.
pub(crate) fn number(process: usize) -> u32 {
    u32::try_from(process).unwrap_or(u32::MAX)
}
