//! How busy the devices and their streams were, why they were idle, and how they came to collectives.

use super::activity::Activity;
use crate::statistics::quantiles::Quantiles;
use serde::Serialize;

/// How busy a device was, or another group of tracks: between the begin of its first slice and the end of its last one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceTime {
    /// It, by its number among [`Recorded::processes`](crate::Recorded::processes).
    pub process: usize,
    /// True for a worker without device rows, whose steps are counted instead. The JSON has those in `worker`.
    #[serde(skip)]
    pub is_runner: bool,
    /// Slices.
    pub slices: u64,
    /// Slices that took less time than the host took to launch them, where both times are known. Each costs the host more time than it keeps the device busy.
    pub short_slices: u64,
    /// Times from launch to begin, of the slices whose launch is known.
    pub launch_delay: Quantiles,
    /// Slices that begin before their launch, because of an error of the clocks. Their delay counts as 0.
    pub early_slices: u64,
    /// The most by which one of them begins before its launch.
    pub early_ns: i64,
    /// Start of the first slice, in ns from the start of the trace.
    pub from_ns: i64,
    /// Time from there to the end of the last slice, in ns.
    pub wall_ns: i64,
    /// Time in which any slice ran, on whichever row.
    pub busy_ns: i64,
    /// Time in which communication ran.
    pub communication_ns: i64,
    /// Time in which communication ran, and nothing else.
    pub exposed_communication_ns: i64,
    /// The longest time in which nothing ran, in ns.
    pub longest_gap_ns: i64,
    /// Start, in ns from the start of the trace.
    pub longest_gap_at_ns: i64,
}

/// How busy a stream of a device was, or another row of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamTime {
    /// The device, by its number among [`Recorded::processes`](crate::Recorded::processes).
    pub process: usize,
    /// As the trace calls the row.
    pub name: String,
    /// Slices on it.
    pub slices: u64,
    /// The replays of a graph among them.
    pub replays: u64,
    /// Time in which one of them ran.
    pub busy_ns: i64,
    /// Average number of launched slices that were still waiting, over the device's time, for slices with a known launch.
    pub mean_queue: Option<f64>,
    /// The most of them, as a launch found it: itself counts, and 65,536 are counted at most.
    pub max_queue: Option<u64>,
}

named_enum! {
    /// A reason for a device to be idle. Every idle nanosecond has one cause: the first in this order that applies.
    pub IdleCause {
        /// Events of its worker or engine are lost there.
        NotRecorded = "not_recorded",
        /// A slice was launched but had not yet begun.
        LaunchDelay = "launch_delay",
        /// Python collected garbage in its worker or engine.
        Gc = "gc",
        /// Its worker moved keys and values.
        KvTransfer = "kv_transfer",
        /// Its worker was in a step and had launched nothing of it.
        Preparing = "preparing",
        /// Its worker was in a step, between two launches: the host is slower than the device. In a trace of another profiler without an engine: the slice that ends the gap was not launched yet.
        LaunchGap = "launch_gap",
        /// Its worker sampled or read back, or had launched all of its step.
        Sampling = "sampling",
        /// No request was under way: too little load, and no bottleneck.
        NoRequest = "no_request",
        /// The engine had given its worker a step, or the sampling after it, but the worker had not yet begun.
        Worker = "worker",
        /// The engine scheduled.
        Scheduling = "scheduling",
        /// The engine took in the output of a step.
        Output = "output",
        /// Another worker of the engine was still in the step.
        OtherRank = "other_rank",
        /// The engine waited for its workers, and none was in the step: they were done.
        Ipc = "ipc",
        /// Requests were under way, and the engine had none of them: they were in the frontend, or on the way.
        Frontend = "frontend",
        /// The engine had requests that wait, and none that run.
        NotSchedulable = "not_schedulable",
        /// The engine had requests, and no span says what it did.
        Engine = "engine",
        /// No engine is known, nor the launch in a trace of another profiler that ends the gap.
        Unknown = "unknown",
    }
}

/// The time that a device was idle for one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct IdleTime {
    /// The cause.
    pub cause: IdleCause,
    /// The time, in ns.
    pub ns: i64,
}

/// The time that a device waited for another worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RankWait {
    /// The worker, by its number among the processes.
    pub process: usize,
    /// Time in which the device waited for other workers while this one was in a step.
    pub ns: i64,
}

/// An activity of the host between the first and the last slice of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HostTime {
    /// The activity.
    pub activity: Activity,
    /// Number of calls.
    pub calls: u64,
    /// Time in which the worker or the engine was busy with it: the union of its spans.
    pub total_ns: i64,
    /// Part of `total_ns` in which the device was idle. For the rest of it, the device was working.
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
    /// The activities of the host.
    pub host: Vec<HostTime>,
}

impl DeviceIdle {
    /// Returns the time that the device was idle for a cause, in ns.
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
    /// Start, in ns from the start of the trace.
    pub start_ns: i64,
    /// When it ended, in ns from the begin of the trace.
    pub end_ns: i64,
    /// Duration without pauses of the serving time, in ns.
    pub dur_ns: i64,
    /// The cause of most of it.
    pub cause: IdleCause,
    /// Time that the device was idle for this cause, in ns.
    pub cause_ns: i64,
}

/// How a device came to the collectives of its engine. A collective is the nth of its kind and communicator on each device.
///
/// The clocks of two hosts are compared only where they are more apart than both may be off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RankTime {
    /// The device, by its number among the processes.
    pub process: usize,
    /// The engine, where one is known.
    pub engine: Option<usize>,
    /// Collectives in which all devices of the engine took part.
    pub collectives: u64,
    /// Collectives in which it is unknown who was last, because the clocks may be off by more than the last one was late.
    pub undecided: u64,
    /// Uncertainty between its clock and the other clocks, in ns: 0 on one host, `null` if unknown.
    pub uncertainty_ns: Option<u64>,
    /// Collectives that it certainly began last.
    pub last: u64,
    /// Number of the `last` collectives in which it was so late that it is an outlier: by Dixon's test at 99 % for 3 to 10 devices, by three standard deviations for more.
    pub outlier: u64,
    /// Total time by which it was later than the last but one: what the others would gain if it had come with them. For each collective at most the duration
    /// of the last but one's part.
    pub late_ns: i64,
    /// Total time that it waited for the last one; for each collective at most the duration of its own part.
    pub waited_ns: i64,
}
