//! Why a device was idle.

use super::activity::Activity;
use serde::Serialize;

/// What an idle device waited for. Every idle nanosecond has one cause: the first in this order that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum IdleCause {
    /// Events of its worker or engine are lost there.
    NotRecorded,
    /// Something was launched and had not begun.
    LaunchDelay,
    /// Python collected garbage in its worker or engine.
    Gc,
    /// Its worker moved keys and values.
    KvTransfer,
    /// Its worker was in a step and had launched nothing of it.
    Preparing,
    /// Its worker was in a step, between two launches: the host is slower than the device. In a trace of another profiler without an engine: the slice that ends the gap was not launched yet.
    LaunchGap,
    /// Its worker sampled or read back, or had launched all of its step.
    Sampling,
    /// No request was under way: too little load, and no bottleneck.
    NoRequest,
    /// The engine had given its worker a step, or the sampling after it, and the worker had not begun.
    Worker,
    /// The engine scheduled.
    Scheduling,
    /// The engine took in the output of a step.
    Output,
    /// Another worker of the engine was still in the step.
    OtherRank,
    /// The engine waited for its workers, and none was in the step: they were done.
    Ipc,
    /// Requests were under way, and the engine had none of them: they were in the frontend, or on the way.
    Frontend,
    /// The engine had requests that wait, and none that run.
    NotSchedulable,
    /// The engine had requests, and no span says what it did.
    Engine,
    /// No engine is known, nor the launch in a trace of another profiler that ends the gap.
    Unknown,
}

impl IdleCause {
    pub(crate) const ALL: [IdleCause; 17] = [
        IdleCause::NotRecorded,
        IdleCause::LaunchDelay,
        IdleCause::Gc,
        IdleCause::KvTransfer,
        IdleCause::Preparing,
        IdleCause::LaunchGap,
        IdleCause::Sampling,
        IdleCause::NoRequest,
        IdleCause::Worker,
        IdleCause::Scheduling,
        IdleCause::Output,
        IdleCause::OtherRank,
        IdleCause::Ipc,
        IdleCause::Frontend,
        IdleCause::NotSchedulable,
        IdleCause::Engine,
        IdleCause::Unknown,
    ];

    /// Returns its name, as in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            IdleCause::NotRecorded => "not_recorded",
            IdleCause::LaunchDelay => "launch_delay",
            IdleCause::Gc => "gc",
            IdleCause::KvTransfer => "kv_transfer",
            IdleCause::Preparing => "preparing",
            IdleCause::LaunchGap => "launch_gap",
            IdleCause::Sampling => "sampling",
            IdleCause::NoRequest => "no_request",
            IdleCause::Worker => "worker",
            IdleCause::Scheduling => "scheduling",
            IdleCause::Output => "output",
            IdleCause::OtherRank => "other_rank",
            IdleCause::Ipc => "ipc",
            IdleCause::Frontend => "frontend",
            IdleCause::NotSchedulable => "not_schedulable",
            IdleCause::Engine => "engine",
            IdleCause::Unknown => "unknown",
        }
    }
}

/// How long a device was idle for a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct IdleTime {
    /// The cause.
    pub cause: IdleCause,
    /// The time, in ns.
    pub ns: i64,
}

/// How long a device waited for another worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RankWait {
    /// The worker, by its number among the processes.
    pub process: usize,
    /// Time in which it was in a step, and the device waited for one of those that were.
    pub ns: i64,
}

/// What the host did while a device was open, from its first slice to its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HostTime {
    /// What it did.
    pub activity: Activity,
    /// How often.
    pub calls: u64,
    /// How long, by the union of its spans in the worker and the engine.
    pub total_ns: i64,
    /// How long of that the device was idle; the rest was hidden behind its work.
    pub exposed_ns: i64,
}

/// Time in which all devices were idle at once. Without a recorded device, of all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IdleTogether {
    /// Time in which at least one of them was between its first and its last slice, in ns.
    pub wall_ns: i64,
    /// Time of that in which none of them had a slice.
    pub idle_ns: i64,
}

/// Why a device was idle, and what the host did meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceIdle {
    /// The device, by its number among the processes.
    pub process: usize,
    /// The worker that feeds it.
    pub worker: usize,
    /// The engine that feeds the worker, where one is known.
    pub engine: Option<usize>,
    /// Time in which nothing ran: the sum of the causes.
    pub idle_ns: i64,
    /// Each cause that there was, the longest first.
    pub causes: Vec<IdleTime>,
    /// The workers that it waited for, the longest first.
    pub waited_for: Vec<RankWait>,
    /// What the host did.
    pub host: Vec<HostTime>,
}

impl DeviceIdle {
    /// How long it was idle for a cause, in ns.
    pub fn of(&self, cause: IdleCause) -> i64 {
        let found = self.causes.iter().find(|time| time.cause == cause);
        found.map_or(0, |time| time.ns)
    }
}

/// A long time in which nothing ran on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LongGap {
    /// The device, by its number among the processes.
    pub process: usize,
    /// When it began, in ns from the begin of the trace.
    pub start_ns: i64,
    /// How long it took.
    pub dur_ns: i64,
    /// What the device waited for most of it.
    pub cause: IdleCause,
    /// How long it waited for that.
    pub cause_ns: i64,
}
