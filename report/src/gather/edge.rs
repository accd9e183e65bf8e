//! A change of what the processes or devices of a run do, while all of them are sorted by time.

use crate::table::{Activity, SeriesKind};
use trace_store::sorter::Record;

/// What changes. At one time, ends come before begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EdgeKind {
    /// A process ends an activity, or begins one.
    End(Activity),
    LossEnd,
    RequestEnd,
    GapEnd,
    DeviceEnd,
    /// Its requests in a batch, and those that wait for one.
    Running,
    Waiting,
    /// How much of the room for keys and values is used, in thousandths.
    KvUsed,
    Begin(Activity),
    LossBegin,
    RequestBegin,
    DeviceBegin,
    GapBegin,
    /// The engine gives a step, or the sampling after it, to its workers.
    StepHanded,
    SampleHanded,
    /// A worker begins to sample.
    SampleBegun,
    /// The process launches something.
    Launch,
    /// What ends the gap was launched.
    Launched,
}

/// A change. Activities, launches and counts are of processes, gaps of devices, requests of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) ns: i64,
    pub(crate) kind: EdgeKind,
    /// The process, or the device by the number of its process.
    pub(crate) of: u32,
    /// Of a count.
    pub(crate) value: u32,
}

impl EdgeKind {
    /// Returns the level of an engine that such an edge sets, if it sets one.
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
    /// Returns a change that is no count.
    pub(crate) fn new(ns: i64, kind: EdgeKind, of: u32) -> Edge {
        Edge {
            ns,
            kind,
            of,
            value: 0,
        }
    }
}

impl Record for Edge {}

/// Returns the number of a process as records have it.
pub(crate) fn number(process: usize) -> u32 {
    u32::try_from(process).unwrap_or(u32::MAX)
}
