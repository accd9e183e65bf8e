//! One request, step or moment of a run.

use super::devices::{IdleCause, IdleTime};
use super::names::InStep;
use super::request::{Request, RequestStatus};
use super::serving_time::RunPhaseKind;
use super::verdict::TraceRange;
use serde::Serialize;

/// The part of a run that a detailed report describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DetailTarget {
    /// The request with this id, or with the only id that contains this text.
    Request(String),
    /// The step with this number.
    Step(u64),
    /// The time, in ns from the start of the trace.
    Time(i64),
}

/// A detailed report on one part of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// Report on a request.
    Request(Box<OneRequest>),
    /// Report on a step.
    Step(Box<OneStep>),
    /// Report on a moment.
    Moment(Box<OneMoment>),
}

/// One request, compared with the others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OneRequest {
    /// The request.
    pub request: Request,
    /// Name of the process at which the request arrived.
    pub process: Option<String>,
    /// Number of later requests with the same id.
    pub later: usize,
    /// Time from the arrival to the end of the request, or to the end of the trace if it has none, in ns.
    pub wall_ns: i64,
    /// Median E2E of all requests, in ns.
    pub e2e_median_ns: Option<f64>,
    /// Median TTFT of all requests, in ns.
    pub ttft_median_ns: Option<f64>,
    /// Parts of the request's time, in order. The last one is open if the request has no end.
    pub parts: Vec<OnePart>,
    /// Load when the request arrived.
    pub arrival: LoadAt,
    /// Steps that contained the request.
    pub steps: RequestSteps,
    /// Times between the request's tokens, if at least two are recorded.
    pub itl: Option<LongestGap>,
    /// Requests that arrived just before and after it, and one of similar size.
    pub neighbours: Vec<Neighbour>,
    /// Time of the request in the trace.
    pub place: TraceRange,
}

/// A part of a request's time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OnePart {
    /// Name of the part.
    pub name: String,
    /// Start, in ns from the arrival.
    pub offset_ns: i64,
    /// Duration, in ns.
    pub dur_ns: i64,
    /// Median duration of this part over all requests that ended, in ns.
    pub median_ns: Option<f64>,
    /// Activity of the devices meanwhile. `None` if the trace has no device at that time.
    pub devices: Option<DevicesIn>,
}

/// Activity of the mean device in a time range.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DevicesIn {
    /// Share of the time in which the devices were busy.
    pub busy: f64,
    /// Main cause of their idle time, and its share of the time.
    pub cause: Option<(IdleCause, f64)>,
}

/// Load at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LoadAt {
    /// Number of requests in flight, not counting the reported one.
    pub in_flight: usize,
    /// Number of these requests that had been scheduled. `None` if the trace does not record this for any request.
    pub scheduled: Option<usize>,
    /// Counters of each engine that has any.
    pub engines: Vec<EngineAt>,
}

/// Last values of an engine's counters before a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EngineAt {
    /// Name of the engine.
    pub name: String,
    /// Number of running requests.
    pub running: Option<u32>,
    /// Number of queued requests.
    pub waiting: Option<u32>,
    /// KV cache use, in percent.
    pub kv_percent: Option<f64>,
}

/// Steps that contained a request. If several workers ran them, only the worker with the most steps counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RequestSteps {
    /// Name of the worker.
    pub worker: Option<String>,
    /// Steps up to the request's first token.
    pub prefill: Vec<StepOfRequest>,
    /// Number of steps after the first token.
    pub decode: usize,
    /// Longest step after the first token.
    pub slowest_decode: Option<StepOfRequest>,
}

/// A step that contained a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StepOfRequest {
    /// Number of the step, if it has one.
    pub number: Option<u64>,
    /// Start, in ns from the start of the trace.
    pub start_ns: i64,
    /// Duration, in ns, or `None` if the step has no end.
    pub dur_ns: Option<i64>,
}

/// Times between the tokens of a request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LongestGap {
    /// Mean, in ns.
    pub mean_ns: f64,
    /// Longest time, in ns.
    pub max_ns: i64,
    /// Start of the longest time, in ns from the start of the trace.
    pub at_ns: i64,
}

/// Another request, for comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Neighbour {
    /// Reason why it is shown: `before`, `after` or `similar`.
    pub relation: &'static str,
    /// Id of the request.
    pub request_id: String,
    /// Outcome of the request.
    pub status: RequestStatus,
    /// Arrival, in ns from the start of the trace.
    pub arrival_ns: i64,
    /// Number of prompt tokens.
    pub prompt_tokens: Option<u64>,
    /// Number of output tokens.
    pub output_tokens: Option<u64>,
    /// TTFT, in ns.
    pub ttft_ns: Option<i64>,
    /// E2E, in ns.
    pub e2e_ns: Option<i64>,
}

/// One step of an engine and its workers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OneStep {
    /// Number of the step.
    pub step: u64,
    /// Time of the step in the trace, from the start of its first span to the end of its last one.
    pub place: TraceRange,
    /// Median duration of all steps, in ns.
    pub median_ns: f64,
    /// Other steps with this number, each with the name of a process.
    pub others: Vec<(String, TraceRange)>,
    /// Contents of the step's batch.
    pub batch: BatchOfStep,
    /// Processes that took part, in the order in which they started.
    pub processes: Vec<ProcessInStep>,
    /// Devices of these processes.
    pub devices: Vec<DeviceInStep>,
    /// The two steps before it and the two after it, each with its number.
    pub neighbours: Vec<(u64, TraceRange)>,
}

/// The contents of a batch, as far as spans or counters record them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BatchOfStep {
    /// Number of requests.
    pub requests: Option<u64>,
    /// Number of requests that prefill.
    pub prefill_requests: Option<u64>,
    /// Number of requests that decode.
    pub decode_requests: Option<u64>,
    /// Number of prompt tokens.
    pub prefill_tokens: Option<u64>,
    /// Number of decode tokens.
    pub decode_tokens: Option<u64>,
}

/// Part of a process in a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessInStep {
    /// Name of the process.
    pub name: String,
    /// True for all processes except the engine that counts the steps.
    pub is_worker: bool,
    /// Start of its first span, in ns from the start of the trace.
    pub start_ns: i64,
    /// Time until the end of its last span, in ns.
    pub dur_ns: i64,
    /// True if one of its spans has no end.
    pub is_open: bool,
    /// Median duration of its part over all steps, in ns.
    pub median_ns: Option<f64>,
    /// Names with the most self time in it, longest first.
    pub inside: Vec<InStep>,
}

/// Activity of a device in a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceInStep {
    /// Name of the device.
    pub name: String,
    /// Time in which the device was busy, in ns.
    pub busy_ns: i64,
    /// Time in which the device was idle, in ns.
    pub idle_ns: i64,
    /// Causes of the idle time, longest first.
    pub causes: Vec<IdleTime>,
}

/// One moment of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OneMoment {
    /// Time of the moment, in ns from the start of the trace.
    pub at_ns: i64,
    /// Phase of the run.
    pub phase: Option<RunPhaseKind>,
    /// Activity of each process.
    pub processes: Vec<ProcessAt>,
    /// Activity of each device.
    pub devices: Vec<DeviceAt>,
    /// Load at the moment.
    pub load: LoadAt,
    /// Requests in flight that arrived first.
    pub oldest: Vec<RequestAt>,
    /// Findings whose places are nearest to the moment.
    pub findings: Vec<FindingNear>,
}

/// Activity of a process at a time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessAt {
    /// Name of the process.
    pub name: String,
    /// Innermost open span of each thread, starting with the main thread.
    pub spans: Vec<SpanAt>,
    /// Time of the process's last event, in ns from the start of the trace, if it is before the moment.
    pub ended_ns: Option<i64>,
}

/// A span that was open at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpanAt {
    /// Name of the span.
    pub name: String,
    /// Name of the thread.
    pub thread: String,
    /// Start, in ns from the start of the trace.
    pub start_ns: i64,
    /// Duration, in ns, or `None` if the span has no end.
    pub dur_ns: Option<i64>,
}

/// Activity of a device at a time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceAt {
    /// Name of the device.
    pub name: String,
    /// Slice that the device was working on.
    pub slice: Option<SpanAt>,
    /// Cause of its idle time, if it was idle.
    pub idle: Option<IdleCause>,
    /// Time in which the device was idle for this cause.
    pub idle_place: Option<TraceRange>,
}

/// A request that was in flight at a time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestAt {
    /// Id of the request.
    pub request_id: String,
    /// Time since its arrival, in ns.
    pub age_ns: i64,
    /// Part that the request was in, and the time since the start of this part, in ns.
    pub part: Option<(String, i64)>,
}

/// A finding near a time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FindingNear {
    /// Rule of the finding.
    pub rule: &'static str,
    /// Evidence of the finding.
    pub evidence: String,
    /// Time range that shows the finding.
    pub place: TraceRange,
}

impl BatchOfStep {
    /// Adds the counts that another span of the step records. If both have a count, the greater one is kept.
    pub(crate) fn add(&mut self, other: &BatchOfStep) {
        self.requests = self.requests.max(other.requests);
        self.prefill_requests = self.prefill_requests.max(other.prefill_requests);
        self.decode_requests = self.decode_requests.max(other.decode_requests);
        self.prefill_tokens = self.prefill_tokens.max(other.prefill_tokens);
        self.decode_tokens = self.decode_tokens.max(other.decode_tokens);
    }
}
