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
use super::verdict::{Place, Stall, Verdict};
use serde::Serialize;

/// A device waits clearly longer than the mean one from so many times its time on.
const CLEARLY: f64 = 1.2;

/// Everything that a report has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunReport {
    /// Version of the schema of this: it changes when a field changes its meaning or goes.
    pub schema: u32,
    /// The verdict: what limited the server, and what to try.
    pub verdict: Verdict,
    /// What was recorded, and what is missing.
    pub recorded: Recorded,
    /// The phases of the run, in order.
    pub run_phases: Vec<RunPhase>,
    /// The part of the run that all figures are about, except for `recorded`, `crash` and `start_up`.
    pub serving: ServingTime,
    /// The start-up: its length, and the spans that took the most time.
    pub start_up: StartUp,
    /// The settings of each engine.
    pub settings: Vec<EngineSettings>,
    /// Which process died first, where one was killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crash: Option<Crash>,
    /// The findings, the costliest first.
    pub findings: Vec<Finding>,
    /// Kinds of events that the report looks for by name and did not find.
    pub unrecognized: Vec<Unrecognized>,
    /// All requests in a few figures.
    pub requests: RequestSummary,
    /// How little the means of those may say.
    pub confidence: Vec<Confidence>,
    /// Where their time goes.
    pub request_parts: RequestParts,
    /// In which order they went through the engine's phases.
    pub phases: Phases,
    /// How their times grow with their number at once.
    pub sizing: Vec<Sizing>,
    /// What their prompts have in common.
    pub prefixes: Prefixes,
    /// Each request, in the order of their arrival.
    pub request: Vec<Request>,
    /// How much there was to do.
    pub load: Vec<LoadLevel>,
    /// The times in which there were unusually many requests.
    pub spikes: Spikes,
    /// What the engines put into their steps.
    pub batching: Vec<Batching>,
    /// How busy each device was.
    pub device: Vec<DeviceTime>,
    /// The same of each worker whose device is not recorded: its steps and its sampling are the slices.
    pub worker: Vec<DeviceTime>,
    /// Why each of them was idle, devices first, in the same order.
    pub idle: Vec<DeviceIdle>,
    /// Time in which all of them were idle at once.
    pub idle_together: IdleTogether,
    /// How busy each of the devices' streams was.
    pub stream: Vec<StreamTime>,
    /// How the devices came to collectives.
    pub rank: Vec<RankTime>,
    /// The longest steps of workers.
    pub slow_steps: Vec<SlowStep>,
    /// The longest times in which devices were idle.
    pub long_gaps: Vec<LongGap>,
    /// The stalls, in order: times in which a process did nothing although requests waited for it.
    pub stalls: Vec<Stall>,
    /// What changed while the run went on.
    pub timeline: Timeline,
    /// The time of each stack of names, each behind the one around it.
    pub stacks: Vec<StackTime>,
    /// The time of each name, that with the most time by itself first.
    pub names: Vec<NameTime>,
}

impl RunReport {
    /// The share of the time of all devices in which they waited for a cause.
    pub fn idle_share(&self, cause: IdleCause) -> f64 {
        let wall_ns: f64 = self.timed().map(|of| of.wall_ns as f64).sum();
        let ns: f64 = self.idle.iter().map(|device| device.of(cause) as f64).sum();
        if wall_ns > 0.0 { ns / wall_ns } else { 0.0 }
    }

    /// Returns the name of a process, for people.
    pub(crate) fn process_name(&self, process: usize) -> String {
        self.recorded.process_name(process)
    }

    /// The devices, and the workers whose device is not recorded, in the order of `idle`.
    pub(crate) fn timed(&self) -> impl Iterator<Item = &DeviceTime> {
        self.device.iter().chain(&self.worker)
    }

    /// Returns the longest time that a device waited for another worker.
    pub(crate) fn longest_wait(&self) -> Option<(&DeviceIdle, &RankWait)> {
        let idle = self.idle.iter();
        let waits = idle.filter_map(|device| Some((device, device.waited_for.first()?)));
        waits.max_by_key(|(_, wait)| wait.ns)
    }

    /// The device that waited for a cause clearly longer than the mean one.
    pub(crate) fn most_idle(&self, cause: IdleCause) -> Option<&DeviceIdle> {
        let most = self.idle.iter().max_by_key(|device| device.of(cause))?;
        let all_ns: f64 = self.idle.iter().map(|device| device.of(cause) as f64).sum();
        let mean_ns = all_ns / self.idle.len() as f64;
        (most.of(cause) as f64 > CLEARLY * mean_ns).then_some(most)
    }
}

/// A noteworthy fact about a run, with its evidence and some advice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The rule that found it.
    pub rule: &'static str,
    /// The evidence, in words.
    pub evidence: String,
    /// The cost, as a share of the whole that `of` names.
    pub cost: f64,
    /// The whole that `cost` is a share of.
    pub of: CostOf,
    /// The advice, in words.
    pub advice: &'static str,
    /// The cost as a share of the time that users waited, by which findings are ordered.
    pub waited: f64,
    /// A time that shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// A kind of event that the report recognizes by its name, and that a run has none of.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unrecognized {
    /// The missing kind of name: `step` or `request`.
    pub what: &'static str,
    /// The figures that the report lacks without it.
    pub consequence: &'static str,
    /// The page and section that list the names.
    pub see: &'static str,
}

impl Unrecognized {
    /// Returns the sentence for the page. The screen breaks it after the colon.
    pub(crate) fn sentence(&self) -> String {
        let Unrecognized {
            what,
            consequence,
            see,
        } = self;
        format!("no {what} is known by name, so {consequence}: {see} lists the names")
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
    /// The figures themselves: some of them say less than they seem to.
    Figures,
}
