//! Tables of the report, and the interface through which their rows leave the fold.

use super::column::Getter::{Count, Int, Process, RealUs, Text, Us};
use super::column::{FigureColumn, TableRow, figure};
use crate::statistics::quantiles::Quantiles;
use crate::table::{
    DeviceIdle, DeviceTime, IdleCause, NameTime, Recorded, Request, RunReport, named_enum,
};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::io;
use std::sync::Arc;

/// Lists columns, each with the function that reads its value.
macro_rules! columns {
    ($($name:literal => $getter:expr,)*) => { &[$(($name, $getter)),*] };
}

/// A device, or a worker whose device is not recorded: how busy it was, and which processes feed it.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceRow {
    time: DeviceTime,
    worker: Option<usize>,
    engine: Option<usize>,
}

impl DeviceRow {
    /// Creates the rows of the table of devices: one for each device in a report, then one for each worker whose device
    /// is not recorded.
    pub fn all(report: &RunReport) -> Vec<DeviceRow> {
        let row = |time: &DeviceTime| {
            let is_same_device = |idle: &&DeviceIdle| idle.process == time.process;
            let idle = report.idle.iter().find(is_same_device);
            DeviceRow {
                time: time.clone(),
                worker: idle.map(|idle| idle.worker),
                engine: idle.and_then(|idle| idle.engine),
            }
        };
        report.timed().map(row).collect()
    }

    /// Returns the figure that `get` reads from the device's launch delays, or `None` if no delay is known.
    fn delay<T>(&self, get: fn(&Quantiles) -> T) -> Option<T> {
        figure(&self.time.launch_delay, get)
    }
}

impl TableRow for DeviceRow {
    const TABLE: &'static str = "device";
    const COLUMNS: &'static [FigureColumn<DeviceRow>] = columns![
        "process" => Process("upid", |row| Some(row.time.process)),
        "is_worker" => Int(|row| Some(row.time.is_runner.into())),
        "worker" => Process("worker_upid", |row| row.worker),
        "engine" => Process("engine_upid", |row| row.engine),
        "slices" => Count(|row| Some(row.time.slices)),
        "short_slices" => Count(|row| Some(row.time.short_slices)),
        "from_ns" => Int(|row| Some(row.time.from_ns)),
        "wall_us" => Us(|row| Some(row.time.wall_ns)),
        "busy_us" => Us(|row| Some(row.time.busy_ns)),
        "idle_us" => Us(|row| Some(row.time.wall_ns - row.time.busy_ns)),
        "communication_us" => Us(|row| Some(row.time.communication_ns)),
        "exposed_communication_us" => Us(|row| Some(row.time.exposed_communication_ns)),
        "longest_gap_us" => Us(|row| Some(row.time.longest_gap_ns)),
        "longest_gap_at_ns" => Int(|row| Some(row.time.longest_gap_at_ns)),
        "launches" => Count(|row| Some(row.time.launch_delay.n)),
        "launch_delay_mean_us" => RealUs(|row| row.delay(|delay| delay.mean_ns)),
        "launch_delay_p50_us" => RealUs(|row| row.delay(|delay| delay.p50_ns)),
        "launch_delay_p90_us" => RealUs(|row| row.delay(|delay| delay.p90_ns)),
        "launch_delay_p99_us" => RealUs(|row| row.delay(|delay| delay.p99_ns)),
        "launch_delay_max_us" => Us(|row| row.delay(|delay| delay.max_ns)),
        "early_slices" => Count(|row| Some(row.time.early_slices)),
        "early_us" => Us(|row| Some(row.time.early_ns)),
    ];

    fn process(&self) -> Option<usize> {
        Some(self.time.process)
    }
}

/// A time in which a device was idle for one cause. A gap between two slices may consist of several intervals.
///
/// Intervals sort by device, then by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IdleInterval {
    /// Process number of the device, or of the worker whose device is not recorded.
    pub process: usize,
    /// Start, in ns from the start of the trace.
    pub start_ns: i64,
    /// Duration in ns.
    pub dur_ns: i64,
    /// Start of the gap that contains the interval.
    pub gap_start_ns: i64,
    /// Cause of the idle time.
    pub cause: IdleCause,
}

impl TableRow for IdleInterval {
    const TABLE: &'static str = "idle";
    const COLUMNS: &'static [FigureColumn<IdleInterval>] = columns![
        "process" => Process("upid", |idle| Some(idle.process)),
        "cause" => Text(|idle| Some(idle.cause.name())),
        "start_ns" => Int(|idle| Some(idle.start_ns)),
        "dur_us" => Us(|idle| Some(idle.dur_ns)),
        "gap_start_ns" => Int(|idle| Some(idle.gap_start_ns)),
    ];

    fn process(&self) -> Option<usize> {
        Some(self.process)
    }
}

impl TableRow for NameTime {
    const TABLE: &'static str = "name";
    const COLUMNS: &'static [FigureColumn<NameTime>] = columns![
        "process" => Process("upid", |name| name.process),
        "group_name" => Text(|name| name.group.as_deref()),
        "row_kind" => Text(|name| Some(name.row_kind.name())),
        "category" => Text(|name| Some(&name.category)),
        "name" => Text(|name| Some(&name.name)),
        "ncall" => Count(|name| Some(name.ncall)),
        "ncall_outermost" => Count(|name| Some(name.ncall_outermost)),
        "ttot_us" => Us(|name| Some(name.ttot_ns)),
        "tsub_us" => Us(|name| Some(name.tsub_ns)),
        "tavg_us" => RealUs(|name| (name.ncall > 0).then_some(name.tavg_ns)),
        "ttot_cpu_us" => Us(|name| name.ttot_cpu_ns),
        "tsub_cpu_us" => Us(|name| name.tsub_cpu_ns),
        "min_us" => Us(|name| figure(&name.duration, |figures| figures.min_ns)),
        "p50_us" => RealUs(|name| figure(&name.duration, |figures| figures.p50_ns)),
        "p90_us" => RealUs(|name| figure(&name.duration, |figures| figures.p90_ns)),
        "p99_us" => RealUs(|name| figure(&name.duration, |figures| figures.p99_ns)),
        "max_us" => Us(|name| figure(&name.duration, |figures| figures.max_ns)),
        "max_concurrency" => Count(|name| name.max_concurrency),
        "unfinished" => Count(|name| Some(name.unfinished)),
        "crossing" => Count(|name| Some(name.crossing)),
    ];

    fn process(&self) -> Option<usize> {
        self.process
    }
}

impl TableRow for Request {
    const TABLE: &'static str = "request";
    const COLUMNS: &'static [FigureColumn<Request>] = columns![
        "request_id" => Text(|request| Some(&request.request_id)),
        "process" => Process("upid", |request| request.process),
        "status" => Text(|request| Some(request.status.name())),
        "reason" => Text(|request| request.reason.as_deref()),
        "arrival_ns" => Int(|request| request.arrival_ns),
        "received_ns" => Int(|request| request.received_ns),
        "read_ns" => Int(|request| request.read_ns),
        "preprocessed_ns" => Int(|request| request.preprocessed_ns),
        "queued_ns" => Int(|request| request.queued_ns),
        "scheduled_ns" => Int(|request| request.scheduled_ns),
        "engine_first_token_ns" => Int(|request| request.engine_first_token_ns),
        "first_token_ns" => Int(|request| request.first_token_ns),
        "first_chunk_ns" => Int(|request| request.first_chunk_ns),
        "last_token_ns" => Int(|request| request.last_token_ns),
        "answered_ns" => Int(|request| request.answered_ns),
        "finished_ns" => Int(|request| request.finished_ns),
        "queue_us" => Us(Request::queue_ns),
        "prefill_us" => Us(Request::prefill_ns),
        "decode_us" => Us(Request::decode_ns),
        "engine_ttft_us" => Us(Request::engine_ttft_ns),
        "ttft_us" => Us(Request::ttft_ns),
        "application_ttft_us" => Us(Request::application_ttft_ns),
        "tpot_us" => Us(Request::tpot_ns),
        "e2e_us" => Us(Request::e2e_ns),
        "application_e2e_us" => Us(Request::application_e2e_ns),
        "part_socket_us" => Us(|request| request.part_ns("socket")),
        "part_http_us" => Us(|request| request.part_ns("HTTP")),
        "part_preprocess_us" => Us(|request| request.part_ns("preprocess")),
        "part_ipc_us" => Us(|request| request.part_ns("IPC")),
        "part_frontend_us" => Us(|request| request.part_ns("frontend")),
        "part_queue_us" => Us(|request| request.part_ns("queue")),
        "part_prefill_us" => Us(|request| request.part_ns("prefill")),
        "part_decode_us" => Us(|request| request.part_ns("decode")),
        "part_return_us" => Us(|request| request.part_ns("return")),
        "part_answer_us" => Us(|request| request.part_ns("answer")),
        "prompt_tokens" => Count(|request| request.prompt_tokens),
        "cached_tokens" => Count(|request| request.cached_tokens),
        "output_tokens" => Count(|request| request.output_tokens),
        "preemptions" => Count(|request| Some(request.preemptions)),
        "preempted_us" => Us(|request| Some(request.preempted_ns)),
    ];

    fn process(&self) -> Option<usize> {
        self.process
    }
}

/// Writes one JSON member per column.
impl Serialize for Request {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(Request::COLUMNS.len()))?;
        for (name, getter) in Request::COLUMNS {
            map.serialize_entry(name, &getter.value(self))?;
        }
        map.end()
    }
}

named_enum! {
    /// Kind of process that recorded a step.
    pub StepRole {
    /// A worker, which recorded a span. A step inside another one of its process is not counted again.
    Worker = "worker",
    /// An engine, which recorded a counter with the tokens of the step. The step starts at the counter's previous
    /// value.
    Engine = "engine",
    }
}

/// A step of a worker or an engine.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRow {
    /// Number of the process.
    pub process: usize,
    /// Kind of the process.
    pub role: StepRole,
    /// Name of the span. An engine's step has none.
    pub name: Option<Arc<str>>,
    /// Start, in ns from the start of the trace.
    pub start_ns: i64,
    /// Duration in ns, or `None` if an engine's step follows a pause.
    pub dur_ns: Option<i64>,
    /// Number of requests that the span names.
    pub requests: Option<u64>,
    /// Number of prompt tokens in the step, if the engine counts them.
    pub prefill_tokens: Option<u64>,
    /// Number of output tokens in the step, if the engine counts them.
    pub decode_tokens: Option<u64>,
}

impl TableRow for StepRow {
    const TABLE: &'static str = "step";
    const COLUMNS: &'static [FigureColumn<StepRow>] = columns![
        "process" => Process("upid", |step| Some(step.process)),
        "role" => Text(|step| Some(step.role.name())),
        "name" => Text(|step| step.name.as_deref()),
        "start_ns" => Int(|step| Some(step.start_ns)),
        "dur_us" => Us(|step| step.dur_ns),
        "requests" => Count(|step| step.requests),
        "prefill_tokens" => Count(|step| step.prefill_tokens),
        "decode_tokens" => Count(|step| step.decode_tokens),
    ];

    fn process(&self) -> Option<usize> {
        Some(self.process)
    }
}

/// Receiver of table rows that are too many for memory, while a run is folded. The rows of a table are ordered by
/// process and start time. If a process is both worker and engine, its worker steps come first.
pub trait RowSink {
    /// Prepares for rows. The fold calls it once, before any row, with the processes and other facts about what was
    /// recorded.
    ///
    /// # Errors
    /// Returns an error if rows cannot be stored.
    fn begin(&mut self, recorded: &Recorded) -> io::Result<()>;

    /// Stores a row of the table of steps. The fold calls it once for each step of a worker or an engine.
    ///
    /// # Errors
    /// Returns an error if the step cannot be stored.
    fn step(&mut self, step: &StepRow) -> io::Result<()>;

    /// Stores a row of the table of idle intervals. The fold calls it once for each time in which a device was idle for
    /// one cause.
    ///
    /// # Errors
    /// Returns an error if the interval cannot be stored.
    fn idle(&mut self, interval: &IdleInterval) -> io::Result<()>;
}
