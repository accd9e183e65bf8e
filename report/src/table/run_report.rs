//! All figures of a report, and its findings.

use super::devices::{
    DeviceIdle, DeviceTime, IdleCause, IdleTogether, LongGap, RankTime, RankWait, StreamTime,
};
use super::load::{Batching, LoadLevel, Sizing, Spikes, Timeline};
use super::names::{NameTime, SlowStep, StackTime};
use super::recorded::{Crash, Recorded};
use super::request::Request;
use super::request_summary::{Confidence, Phases, Prefixes, RequestParts, RequestSummary};
use super::serving_time::{RunPhase, ServingTime, StartUp};
use super::settings::EngineSettings;
use super::verdict::{Stall, TraceRange, Verdict};
use serde::Serialize;

/// Minimum factor by which a device must wait longer than the mean device.
const CLEARLY: f64 = 1.2;

/// All data of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunReport {
    /// Version of the schema of this struct. It changes when a field changes its meaning or is removed.
    pub schema: u32,
    /// Verdict: what limited the server, and what to try.
    pub verdict: Verdict,
    /// What was recorded, and what is missing.
    pub recorded: Recorded,
    /// Phases of the run, in order.
    pub run_phases: Vec<RunPhase>,
    /// The part of the run that all figures cover, except for `recorded`, `crash` and `start_up`.
    pub serving: ServingTime,
    /// The start-up: its length, and the spans that took the most time.
    pub start_up: StartUp,
    /// Settings of each engine.
    pub settings: Vec<EngineSettings>,
    /// Crash of the run, if a process was killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crash: Option<Crash>,
    /// Findings, costliest first.
    pub findings: Vec<Finding>,
    /// Kinds of events that the report recognizes by name but did not find.
    pub unrecognized: Vec<Unrecognized>,
    /// Summary of all requests.
    pub requests: RequestSummary,
    /// Confidence intervals of the summary's means.
    pub confidence: Vec<Confidence>,
    /// Parts of the time of requests.
    pub request_parts: RequestParts,
    /// Sequences of phases that requests went through in the engine.
    pub phases: Phases,
    /// How times of requests grow with the number in flight.
    pub sizing: Vec<Sizing>,
    /// Prefixes that prompts share.
    pub prefixes: Prefixes,
    /// All requests, in the order of their arrival.
    pub request: Vec<Request>,
    /// Levels of the load.
    pub load: Vec<LoadLevel>,
    /// Times with unusually many requests.
    pub spikes: Spikes,
    /// Contents of the engines' steps.
    pub batching: Vec<Batching>,
    /// How busy each device was.
    pub device: Vec<DeviceTime>,
    /// How busy each worker without a recorded device was. Its steps and its sampling count as slices.
    pub worker: Vec<DeviceTime>,
    /// Why each of them was idle: the devices, then the workers, in the same order.
    pub idle: Vec<DeviceIdle>,
    /// Time in which all of them were idle at once.
    pub idle_together: IdleTogether,
    /// How busy each stream of the devices was.
    pub stream: Vec<StreamTime>,
    /// How late each device joined collectives.
    pub rank: Vec<RankTime>,
    /// Longest steps of workers.
    pub slow_steps: Vec<SlowStep>,
    /// Longest times in which devices were idle.
    pub long_gaps: Vec<LongGap>,
    /// Stalls in order of time: a process did nothing although requests waited for it.
    pub stalls: Vec<Stall>,
    /// Values over time.
    pub timeline: Timeline,
    /// Time of each stack of names. Each stack comes after the stack around it.
    pub stacks: Vec<StackTime>,
    /// Times of names, highest self time first.
    pub names: Vec<NameTime>,
}

impl RunReport {
    /// Returns the share of the time of all devices, from 0 to 1, in which they were idle for this cause. A worker
    /// whose device is not recorded counts as a device.
    pub fn idle_share(&self, cause: IdleCause) -> f64 {
        let wall_ns: f64 = self.timed().map(|time| time.wall_ns as f64).sum();
        let ns: f64 = self
            .idle
            .iter()
            .map(|device| device.cause_ns(cause) as f64)
            .sum();
        if wall_ns > 0.0 { ns / wall_ns } else { 0.0 }
    }

    /// Returns the name of a process, for people.
    pub(crate) fn process_name(&self, process: usize) -> String {
        self.recorded.process_name(process)
    }

    /// Returns the devices, then the workers whose device is not recorded, in the order of `idle`.
    pub(crate) fn timed(&self) -> impl Iterator<Item = &DeviceTime> {
        self.device.iter().chain(&self.worker)
    }

    /// Returns the device that waited longest in total for one other worker, with that wait, or `None` if no device
    /// waited.
    pub(crate) fn longest_wait(&self) -> Option<(&DeviceIdle, &RankWait)> {
        let idle = self.idle.iter();
        let waits = idle.filter_map(|device| Some((device, device.waited_for.first()?)));
        waits.max_by_key(|(_, wait)| wait.ns)
    }

    /// Returns the device that was idle longest for this cause, or `None` unless that time is over 1.2 times the mean
    /// of all devices.
    pub(crate) fn most_idle(&self, cause: IdleCause) -> Option<&DeviceIdle> {
        let most = self
            .idle
            .iter()
            .max_by_key(|device| device.cause_ns(cause))?;
        let all_ns: f64 = self
            .idle
            .iter()
            .map(|device| device.cause_ns(cause) as f64)
            .sum();
        let mean_ns = all_ns / self.idle.len() as f64;
        (most.cause_ns(cause) as f64 > CLEARLY * mean_ns).then_some(most)
    }
}

/// A noteworthy fact about a run, with its evidence and advice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Rule that produced the finding.
    pub rule: &'static str,
    /// Evidence, as text.
    pub evidence: String,
    /// Cost, as a share of the whole that `of` names.
    pub cost: f64,
    /// Whole that `cost` is a share of.
    pub of: CostOf,
    /// Advice, as text.
    pub advice: &'static str,
    /// Cost as a share of the time that users waited. Findings are sorted by it.
    pub waited: f64,
    /// Time range that shows the finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<TraceRange>,
}

/// A kind of event that the report recognizes by its name, and that a run lacks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unrecognized {
    /// Missing kind of name: `step` or `request`.
    pub what: &'static str,
    /// What the report cannot do without it.
    pub consequence: &'static str,
    /// Page and section that list the names.
    pub see: &'static str,
}

impl Unrecognized {
    /// Returns the sentence about the missing kind of event for the HTML page. The screen breaks it after the colon.
    pub(crate) fn sentence(&self) -> String {
        let Unrecognized {
            what,
            consequence,
            see,
        } = self;
        format!("no {what} is recognized by name, so {consequence}: {see} lists the names")
    }
}

/// The whole that a cost is a share of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CostOf {
    /// The time from the first slice of a device to its last.
    DeviceTime,
    /// The time from a request's arrival to its end.
    RequestTime,
    /// The time of the run.
    WallTime,
    /// All requests.
    Requests,
    /// The figures themselves, some of which are less reliable than they seem.
    Figures,
}
