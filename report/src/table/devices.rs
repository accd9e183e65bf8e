//! How busy the devices and their streams were, why they were idle, and how late they joined collectives.

use super::activity::Activity;
use crate::statistics::quantiles::Quantiles;
use serde::Serialize;

/// How busy a device or another group of tracks was, between the start of its first slice and the end of its last one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceTime {
    /// Number of the device among [`Recorded::processes`](crate::Recorded::processes).
    pub process: usize,
    /// True for a worker without a recorded device, whose steps are counted instead. In the JSON, these are in
    /// `worker`.
    #[serde(skip)]
    pub is_runner: bool,
    /// Number of slices.
    pub slices: u64,
    /// Number of slices that took less time than the host needed to launch them, if both times are known. Each of them
    /// costs the host more time than it keeps the device busy.
    pub short_slices: u64,
    /// Times from launch to start, of slices with a known launch.
    pub launch_delay: Quantiles,
    /// Number of slices that start before their launch, because of clock errors. Their delay counts as 0.
    pub early_slices: u64,
    /// Maximum time by which a slice starts before its launch, in ns.
    pub early_ns: i64,
    /// Start of the first slice, in ns from the start of the trace.
    pub from_ns: i64,
    /// Time from there to the end of the last slice, in ns.
    pub wall_ns: i64,
    /// Time in which any slice ran, on any track, in ns.
    pub busy_ns: i64,
    /// Time in which communication ran, in ns.
    pub communication_ns: i64,
    /// Time in which only communication ran, in ns.
    pub exposed_communication_ns: i64,
    /// Longest time in which nothing ran, in ns.
    pub longest_gap_ns: i64,
    /// Start of that time, in ns from the start of the trace.
    pub longest_gap_at_ns: i64,
}

/// How busy a stream or another track of a device was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamTime {
    /// Number of the device among [`Recorded::processes`](crate::Recorded::processes).
    pub process: usize,
    /// Name of the track in the trace.
    pub name: String,
    /// Number of slices on the stream.
    pub slices: u64,
    /// Number of these slices that are graph replays.
    pub replays: u64,
    /// Time in which one of them ran, in ns.
    pub busy_ns: i64,
    /// Mean number of slices that were launched but not started, over the device's time. Only slices with a known
    /// launch count.
    pub mean_queue: Option<f64>,
    /// Maximum number of such slices at a launch, including the launched one. At most 65,536 are counted.
    pub max_queue: Option<u64>,
}

named_enum! {
    /// A cause of a device's idle time. Every idle nanosecond has one cause: the first in this order that applies.
    pub IdleCause {
        /// Events of the worker or the engine were lost.
        NotRecorded = "not_recorded",
        /// A slice was launched but had not started yet.
        LaunchDelay = "launch_delay",
        /// Python collected garbage in the worker or the engine.
        Gc = "gc",
        /// The worker moved keys and values.
        KvTransfer = "kv_transfer",
        /// The worker was in a step but had not launched any work of it.
        Preparing = "preparing",
        /// The worker was in a step between two launches, because the host is slower than the device. In a trace of
        /// another profiler without an engine, the slice that ends the gap had not been launched yet.
        LaunchGap = "launch_gap",
        /// The worker sampled or copied tokens back, or had launched all work of its step.
        Sampling = "sampling",
        /// No request was in flight. This is too little load, not a bottleneck.
        NoRequest = "no_request",
        /// The engine had handed the worker a step, or the sampling after it, but the worker had not started it.
        Worker = "worker",
        /// The engine was scheduling.
        Scheduling = "scheduling",
        /// The engine was processing the output of a step.
        Output = "output",
        /// Another worker of the engine was still in the step.
        OtherRank = "other_rank",
        /// The engine waited for its workers, but no worker was in the step any more.
        Ipc = "ipc",
        /// Requests were in flight, but the engine had none of them: they were in the frontend or on their way.
        Frontend = "frontend",
        /// The engine had queued requests, but none were running.
        NotSchedulable = "not_schedulable",
        /// The engine had requests, but no span shows what it did.
        Engine = "engine",
        /// No engine is known. In a trace of another profiler, the launch of the slice that ends the gap is not known
        /// either.
        Unknown = "unknown",
    }
}

/// Time that a device was idle for one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct IdleTime {
    /// Cause of the idle time.
    pub cause: IdleCause,
    /// Idle time, in ns.
    pub ns: i64,
}

/// Time that a device waited for another worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RankWait {
    /// Number of the worker among the processes.
    pub process: usize,
    /// Time in which the device waited for other workers while this one was in a step, in ns.
    pub ns: i64,
}

/// An activity of the host between the first and the last slice of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HostTime {
    /// Kind of activity.
    pub activity: Activity,
    /// Number of calls.
    pub calls: u64,
    /// Time in which the worker or the engine was busy with it, in ns: the union of its spans.
    pub total_ns: i64,
    /// Part of `total_ns` in which the device was idle. During the rest, the device was busy.
    pub exposed_ns: i64,
}

/// Time in which all devices were idle at once. If no device is recorded, it is about all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IdleTogether {
    /// Time in which at least one device was between its first and its last slice, in ns.
    pub wall_ns: i64,
    /// Part of this time in which no device had a slice, in ns.
    pub idle_ns: i64,
}

/// Why a device was idle, and what the host did meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceIdle {
    /// Number of the device among the processes.
    pub process: usize,
    /// Worker that feeds the device.
    pub worker: usize,
    /// Engine that feeds the worker, if known.
    pub engine: Option<usize>,
    /// Time in which nothing ran, in ns. It is the sum of the causes.
    pub idle_ns: i64,
    /// Causes of the idle time, longest first.
    pub causes: Vec<IdleTime>,
    /// Workers that the device waited for, longest first.
    pub waited_for: Vec<RankWait>,
    /// Activities of the host.
    pub host: Vec<HostTime>,
}

impl DeviceIdle {
    /// Returns the time that the device was idle for a cause, in ns.
    pub fn cause_ns(&self, cause: IdleCause) -> i64 {
        let found = self.causes.iter().find(|time| time.cause == cause);
        found.map_or(0, |time| time.ns)
    }
}

/// A long time in which nothing ran on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LongGap {
    /// Number of the device among the processes.
    pub process: usize,
    /// Start, in ns from the start of the trace.
    pub start_ns: i64,
    /// End, in ns from the start of the trace.
    pub end_ns: i64,
    /// Duration without pauses of the serving time, in ns.
    pub dur_ns: i64,
    /// Main cause of the gap.
    pub cause: IdleCause,
    /// Time that the device was idle for this cause, in ns.
    pub cause_ns: i64,
}

/// How late a device joined the collectives of its engine. A collective is the nth of its kind and communicator on each
/// device.
///
/// Times of two hosts are compared only if they differ by more than the uncertainty of both clocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RankTime {
    /// Number of the device among the processes.
    pub process: usize,
    /// Engine of the device, if known.
    pub engine: Option<usize>,
    /// Number of collectives in which all devices of the engine took part.
    pub collectives: u64,
    /// Number of collectives whose last device is unknown, because the clock uncertainty exceeds the delay of the last
    /// one.
    pub undecided: u64,
    /// Uncertainty between this device's clock and the other clocks, in ns. It is 0 on one host, and `null` if unknown.
    pub uncertainty_ns: Option<u64>,
    /// Number of collectives that this device certainly started last.
    pub last: u64,
    /// Number of the `last` collectives in which the device was so late that it is an outlier: by Dixon's test at 99 %
    /// for 3 to 10 devices, by three standard deviations for more.
    pub outlier: u64,
    /// Total time by which the device started later than the second to last, in ns. This is what the others would gain
    /// if it had started with them. For each collective it is limited to the duration of the second to last device's
    /// part.
    pub late_ns: i64,
    /// Total time that the device waited for the last one, in ns. For each collective it is limited to the duration of
    /// its own part.
    pub waited_ns: i64,
}
