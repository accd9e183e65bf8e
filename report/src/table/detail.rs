//! One request, step or moment of a run.

use super::devices::{IdleCause, IdleTime};
use super::names::InStep;
use super::request::{Request, RequestStatus};
use super::serving_time::RunPhaseKind;
use super::verdict::Place;
use serde::Serialize;

/// The part of a run that a detailed report is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DetailOf {
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
    /// On a request.
    Request(Box<OneRequest>),
    /// On a step.
    Step(Box<OneStep>),
    /// On a moment.
    Moment(Box<OneMoment>),
}

/// One request, compared with the others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OneRequest {
    /// The request.
    pub request: Request,
    /// The name of the process at which it arrived.
    pub process: Option<String>,
    /// Number of later requests with the same id.
    pub later: usize,
    /// Time from its arrival to its end, or to the end of the trace if it has none, in ns.
    pub wall_ns: i64,
    /// Median E2E of all requests, in ns.
    pub e2e_median_ns: Option<f64>,
    /// Median TTFT of all requests, in ns.
    pub ttft_median_ns: Option<f64>,
    /// The parts of its time, in order. The last one is open if the request has no end.
    pub parts: Vec<OnePart>,
    /// The load when it arrived.
    pub arrival: LoadAt,
    /// The steps that contained it.
    pub steps: RequestSteps,
    /// The times between its tokens, if at least two are recorded.
    pub itl: Option<LongestGap>,
    /// The requests that arrived just before and after it, and one of similar size.
    pub neighbours: Vec<Neighbour>,
    /// Its time in the trace.
    pub place: Place,
}

/// A part of a request's time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OnePart {
    /// The name.
    pub name: String,
    /// Start, in ns from the arrival.
    pub offset_ns: i64,
    /// Duration, in ns.
    pub dur_ns: i64,
    /// Median of this part over all requests that ended, in ns.
    pub median_ns: Option<f64>,
    /// The activity of the devices in it. `None` if the trace has no device then.
    pub devices: Option<DevicesIn>,
}

/// The activity of the mean device in some time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DevicesIn {
    /// The share of the time in which they worked.
    pub busy: f64,
    /// The cause of most of their idle time, and its share of the time.
    pub cause: Option<(IdleCause, f64)>,
}

/// The load at some time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LoadAt {
    /// Requests in flight, without the one that is reported on.
    pub in_flight: usize,
    /// The requests in flight that had been scheduled. `None` if the trace does not say so of any request.
    pub scheduled: Option<usize>,
    /// The counters of each engine that has any.
    pub engines: Vec<EngineAt>,
}

/// The last values of an engine's counters before some time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EngineAt {
    /// Its name.
    pub name: String,
    /// Running requests.
    pub running: Option<u32>,
    /// Waiting requests.
    pub waiting: Option<u32>,
    /// KV cache use, in percent.
    pub kv_percent: Option<f64>,
}

/// The steps that contained a request. If several workers ran them, only the worker with the most steps counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RequestSteps {
    /// The name of the worker.
    pub worker: Option<String>,
    /// The steps up to its first token.
    pub prefill: Vec<StepOfRequest>,
    /// Number of steps after its first token.
    pub decode: usize,
    /// The longest step after its first token.
    pub slowest_decode: Option<StepOfRequest>,
}

/// A step that contained a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StepOfRequest {
    /// Its number, if it has one.
    pub number: Option<u64>,
    /// Start, in ns from the start of the trace.
    pub start_ns: i64,
    /// Duration, in ns; `None` if it has no end.
    pub dur_ns: Option<i64>,
}

/// The times between the tokens of a request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LongestGap {
    /// Mean, in ns.
    pub mean_ns: f64,
    /// The longest, in ns.
    pub max_ns: i64,
    /// Start of the longest, in ns from the start of the trace.
    pub at_ns: i64,
}

/// Another request, for comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Neighbour {
    /// Reason why it is shown: `before`, `after` or `similar`.
    pub relation: &'static str,
    /// The id.
    pub request_id: String,
    /// Its outcome.
    pub status: RequestStatus,
    /// Arrival, in ns from the start of the trace.
    pub arrival_ns: i64,
    /// Number of tokens of the prompt.
    pub prompt_tokens: Option<u64>,
    /// Number of tokens of the answer.
    pub output_tokens: Option<u64>,
    /// TTFT, in ns.
    pub ttft_ns: Option<i64>,
    /// E2E, in ns.
    pub e2e_ns: Option<i64>,
}

/// One step of an engine and its workers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OneStep {
    /// The number.
    pub step: u64,
    /// Its time in the trace: from the start of its first span to the end of its last one.
    pub place: Place,
    /// Median duration of all steps, in ns.
    pub median_ns: f64,
    /// Other steps with this number, each with the name of a process.
    pub others: Vec<(String, Place)>,
    /// Its batch.
    pub batch: BatchOfStep,
    /// The processes that took part, in the order in which they began.
    pub processes: Vec<ProcessInStep>,
    /// The devices of these processes.
    pub devices: Vec<DeviceInStep>,
    /// The two steps before it and the two after it, each with its number.
    pub neighbours: Vec<(u64, Place)>,
}

/// The contents of a batch, as far as spans or counters record them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BatchOfStep {
    /// Requests.
    pub requests: Option<u64>,
    /// Requests that prefill.
    pub prefill_requests: Option<u64>,
    /// Requests that decode.
    pub decode_requests: Option<u64>,
    /// Tokens of prompts.
    pub prefill_tokens: Option<u64>,
    /// Tokens of answers.
    pub decode_tokens: Option<u64>,
}

/// The part of a process in a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessInStep {
    /// The name of the process.
    pub name: String,
    /// True unless it is the engine that counts the steps.
    pub is_worker: bool,
    /// Start of its first span, in ns from the start of the trace.
    pub start_ns: i64,
    /// Time up to the end of its last span, in ns.
    pub dur_ns: i64,
    /// True if a span of it has no end.
    pub is_open: bool,
    /// Median of this time over all steps, in ns.
    pub median_ns: Option<f64>,
    /// The names with the most self time in it, the longest first.
    pub inside: Vec<InStep>,
}

/// The activity of a device in a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceInStep {
    /// Its name.
    pub name: String,
    /// Time in which it worked, in ns.
    pub busy_ns: i64,
    /// Time in which it was idle, in ns.
    pub idle_ns: i64,
    /// The causes, the longest first.
    pub causes: Vec<IdleTime>,
}

/// One moment of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OneMoment {
    /// The time, in ns from the start of the trace.
    pub at_ns: i64,
    /// The phase of the run.
    pub phase: Option<RunPhaseKind>,
    /// The activity of each process.
    pub processes: Vec<ProcessAt>,
    /// The activity of each device.
    pub devices: Vec<DeviceAt>,
    /// The load.
    pub load: LoadAt,
    /// The requests in flight that arrived first.
    pub oldest: Vec<RequestAt>,
    /// The findings whose places are nearest, each with the time from here to there; 0 if the moment is in it.
    pub findings: Vec<FindingNear>,
}

/// The activity of a process at some time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessAt {
    /// Its name.
    pub name: String,
    /// The innermost open span of each thread, the main thread first.
    pub spans: Vec<SpanAt>,
    /// Time of its last event, in ns from the start of the trace, if that was earlier.
    pub ended_ns: Option<i64>,
}

/// A span that was open at some time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpanAt {
    /// Its name.
    pub name: String,
    /// The name of its thread.
    pub thread: String,
    /// Start, in ns from the start of the trace.
    pub start_ns: i64,
    /// Duration, in ns; `None` if it has no end.
    pub dur_ns: Option<i64>,
}

/// The activity of a device at some time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceAt {
    /// Its name.
    pub name: String,
    /// The slice that it was working on.
    pub slice: Option<SpanAt>,
    /// The cause of its idle time, if it was idle.
    pub idle: Option<IdleCause>,
    /// Start, in ns from the start of the trace, and duration of the time in which it was idle for this cause.
    pub idle_place: Option<Place>,
}

/// A request that was in flight at some time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestAt {
    /// The id.
    pub request_id: String,
    /// Time since its arrival, in ns.
    pub age_ns: i64,
    /// The part that it was in, and the time that it had spent there, in ns.
    pub part: Option<(String, i64)>,
}

/// A finding near some time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FindingNear {
    /// The rule.
    pub rule: &'static str,
    /// Its evidence.
    pub evidence: String,
    /// The time that shows it.
    pub place: Place,
}

impl BatchOfStep {
    /// Adds the counts of another span. If both have a count, the greater one is kept.
    pub(crate) fn add(&mut self, other: &BatchOfStep) {
        self.requests = self.requests.max(other.requests);
        self.prefill_requests = self.prefill_requests.max(other.prefill_requests);
        self.decode_requests = self.decode_requests.max(other.decode_requests);
        self.prefill_tokens = self.prefill_tokens.max(other.prefill_tokens);
        self.decode_tokens = self.decode_tokens.max(other.decode_tokens);
    }
}
