//! What the events of one chunk say.

use super::device_slice::{DeviceSlice, LaunchEnd};
use super::edge::{Edge, EdgeKind, number};
use super::event_times::{EventTimes, RunParts};
use super::name_keys::{NameKeys, NamePlace};
use super::process_ids::ProcessIds;
use super::prompt_blocks::{self, Prompt};
use super::reasons::Reasons;
use super::request_moment::{
    OfProcess, RequestEvent, RequestMoment, RequestToken, arg, ids, is_instant, moment,
    request_key, rounded_ns,
};
use super::request_output::{Pauses, RequestOutput, outputs};
use super::settings_record::settings;
use super::slice_record::{MOST_OPEN, OpenSpan, SliceRecord, row};
use super::step_record::{StepRecord, StepSpeculation, StepTokens};
use crate::options::NamesBy;
use crate::table::{Activity, RowKind};
use sa_format::{ENGINE_SETTINGS, Phase};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use trace_merge::collective::Collective;
use trace_merge::events::{Devices, EventUse, PlacedEvent, TraceThread, Work};
use xxhash_rust::xxh3::xxh3_64;

/// The category of a graph's replay on a device (FORMAT.md §2).
const REPLAY: &str = "graph";

/// Spans in which an engine starts. A server is ready when the last one of them ends.
const STARTS: [&str; 3] = ["AsyncLLM.__init__", "LLMEngine.__init__", "LLM.__init__"];

/// What a chunk is read with.
pub(crate) struct ChunkContext<'a> {
    pub(crate) threads: &'a [TraceThread],
    pub(crate) names_by: NamesBy,
    pub(crate) devices: &'a Devices,
    /// The number of each process's run. Beyond the last one it is 0.
    pub(crate) runs: &'a [u64],
    pub(crate) parts: RunParts,
}

/// What was found in a chunk.
#[derive(Default)]
pub(crate) struct ChunkFacts {
    pub(crate) keys: NameKeys,
    /// With the chunk's own numbers of keys.
    pub(crate) slices: Vec<SliceRecord>,
    pub(crate) on_devices: Vec<DeviceSlice>,
    pub(crate) launch_ends: Vec<LaunchEnd>,
    pub(crate) edges: Vec<Edge>,
    /// The keys of spans without an end.
    pub(crate) unfinished: Vec<u32>,
    /// The same spans, the first ones.
    pub(crate) open: Vec<OpenSpan>,
    /// With the chunk's own numbers of reasons.
    pub(crate) moments: Vec<RequestMoment>,
    pub(crate) reasons: Reasons,
    pub(crate) tokens: Vec<RequestToken>,
    pub(crate) outputs: Vec<RequestOutput>,
    pub(crate) pauses: Pauses,
    /// The ids of the requests, by hash.
    pub(crate) requests: HashMap<u64, String>,
    pub(crate) process_ids: ProcessIds,
    /// With the chunk's own numbers of keys.
    pub(crate) steps: Vec<StepRecord>,
    pub(crate) step_tokens: Vec<StepTokens>,
    pub(crate) speculations: Vec<StepSpeculation>,
    /// Ends of the spans in which engines start.
    pub(crate) ready: Vec<i64>,
    /// With the hashes of their blocks.
    pub(crate) prompts: Vec<(Prompt, Vec<u64>)>,
    /// Settings of engines, with the number of the process.
    pub(crate) settings: Vec<(usize, BTreeMap<String, Value>)>,
    pub(crate) event_times: EventTimes,
}

impl ChunkFacts {
    /// Takes an event.
    pub(crate) fn take(&mut self, context: &ChunkContext<'_>, event: &PlacedEvent<'_>) {
        let process = context.threads[event.thread].process;
        self.take_times(context, event, process);
        match event.phase {
            Phase::Complete | Phase::Begin | Phase::AsyncBegin => {
                self.take_slice(context, event, process);
            }
            Phase::Counter => self.take_counts(event, process),
            Phase::Instant
            | Phase::LegacyInstant
            | Phase::AsyncInstant
            | Phase::End
            | Phase::AsyncEnd => {
                self.take_moments(context, event, &event.name(), process);
            }
            Phase::FlowStart | Phase::FlowStep | Phase::FlowEnd => {
                let end = LaunchEnd::of_arrow(context.devices, event, process);
                self.launch_ends.extend(end);
            }
            Phase::Metadata if event.name() == ENGINE_SETTINGS => {
                self.settings.push((process, settings(event)));
            }
            _ => {}
        }
    }

    /// Adds the times at which the process certainly ran. Async work may begin before its process knows of it, as a request does in the kernel.
    fn take_times(&mut self, context: &ChunkContext<'_>, event: &PlacedEvent<'_>, process: usize) {
        let (parts, process) = (context.parts, number(process));
        let is_async = context.threads[event.thread].is_lane || event.phase == Phase::AsyncBegin;
        if !is_async {
            self.event_times.take(parts, process, event.ts_ns);
        }
        if let Some(end_ns) = event.end_ns().filter(|_| !event.is_unfinished()) {
            self.event_times.take(parts, process, end_ns);
        }
    }

    fn take_moments(
        &mut self,
        context: &ChunkContext<'_>,
        event: &PlacedEvent<'_>,
        name: &str,
        process: usize,
    ) {
        let of_process = OfProcess {
            process: number(process),
            run: context.runs.get(process).copied().unwrap_or(0),
        };
        if name == prompt_blocks::NAME && is_instant(event.phase) {
            let prompt = prompt_blocks::prompt(event, of_process);
            return self.prompts.extend(prompt);
        }
        let found = moment(event, name, of_process.process, &mut self.reasons);
        let Some((moment, ids)) = found else {
            return;
        };
        for id in ids {
            let request = request_key(&id, of_process.run);
            self.requests.entry(request).or_insert(id);
            match moment {
                RequestEvent::Moment(moment) => {
                    self.moments.push(RequestMoment { request, ..moment });
                }
                RequestEvent::Token(token) => self.tokens.push(RequestToken { request, ..token }),
            }
        }
    }

    /// How many requests a scheduler has, and how full its cache is.
    fn take_counts(&mut self, event: &PlacedEvent<'_>, process: usize) {
        let of = |name| arg::<f64>(event, name);
        let counts = match &*event.name() {
            "requests" => vec![
                (EdgeKind::Running, of("running")),
                (EdgeKind::Waiting, of("waiting")),
            ],
            "kv_cache" => vec![(EdgeKind::KvUsed, of("used_percent").map(|of| 10.0 * of))],
            "kv_blocks" => {
                let blocks = of("used").zip(of("free"));
                let share = |(used, free)| 1e3 * used / (used + free);
                vec![(EdgeKind::KvUsed, blocks.map(share))]
            }
            "tokens" => return self.step_tokens.extend(step_tokens(event, process)),
            "speculation" => return self.speculations.extend(speculation(event, process)),
            _ => return,
        };
        for (kind, value) in counts {
            if let Some(value) = value.and_then(rounded) {
                let edge = Edge::new(event.ts_ns, kind, number(process));
                self.edges.push(Edge { value, ..edge });
            }
        }
    }

    fn take_slice(&mut self, context: &ChunkContext<'_>, event: &PlacedEvent<'_>, process: usize) {
        let (name, category) = (event.name(), event.category());
        self.take_moments(context, event, &name, process);
        let listed = outputs(event, &name, number(process), &mut self.pauses);
        self.outputs.extend(listed);
        let event_use = context.devices.event_use(event, process, &category);
        let is_async = || event.phase == Phase::AsyncBegin || context.threads[event.thread].is_lane;
        let row_kind = match event_use {
            EventUse::Work(_) => RowKind::Track,
            EventUse::Region => RowKind::Region,
            EventUse::Host if is_async() => RowKind::Async,
            EventUse::Host => RowKind::Thread,
        };
        let key = self.key(context, event, row_kind, (&category, &name));
        let Some(end_ns) = event.end_ns().filter(|_| !event.is_unfinished()) else {
            self.unfinished.push(key);
            if self.open.len() < MOST_OPEN {
                self.open.push(OpenSpan::of(event, &name, process));
            }
            return;
        };
        let end_ns = end_ns.max(event.ts_ns);
        if STARTS.contains(&&*name) {
            self.ready.push(end_ns);
        }
        self.slices.push(SliceRecord {
            row: row(event, process),
            start_ns: event.ts_ns,
            end_ns: Reverse(end_ns),
            key,
            cpu_ns: event.cpu_ns().unwrap_or(-1),
        });
        match (event_use, row_kind) {
            (EventUse::Work(work), _) => {
                let device = context.devices.device(process).unwrap_or(process);
                self.take_work(event, work, (device, end_ns), (&name, key));
                let ends = LaunchEnd::of_args(context.devices, event, process, None);
                self.launch_ends.extend(ends);
            }
            (EventUse::Region, _) => {}
            (EventUse::Host, RowKind::Async) => self.take_batch(event, process, end_ns, key),
            (EventUse::Host, _) => {
                let span = (process, end_ns, key);
                self.take_launch(context.devices, event, span);
                self.take_activity(context.devices, event, span);
            }
        }
    }

    /// Takes a span in which a process may launch work.
    fn take_launch(
        &mut self,
        devices: &Devices,
        event: &PlacedEvent<'_>,
        (process, end_ns, key): (usize, i64, u32),
    ) {
        let key = self.keys.of(key);
        let may_launch = devices.may_launch(process, &key.category);
        if devices.has_device(process) && key.is_launch {
            self.edge(event.ts_ns, EdgeKind::Launch, process);
        }
        if may_launch {
            let dur_ns = Some(end_ns - event.ts_ns);
            let ends = LaunchEnd::of_args(devices, event, process, dur_ns);
            self.launch_ends.extend(ends);
        }
    }

    /// Returns the number of the key under which a slice is counted.
    fn key(
        &mut self,
        context: &ChunkContext<'_>,
        event: &PlacedEvent<'_>,
        row_kind: RowKind,
        name: (&str, &str),
    ) -> u32 {
        let thread = &context.threads[event.thread];
        let (mut place, mut group) = (NamePlace::default(), None);
        match context.names_by {
            NamesBy::Run => {}
            NamesBy::Process => place.process = Some(thread.process),
            NamesBy::Thread => {
                place.process = Some(thread.process);
                place.group = Some(event.thread as u64);
            }
            NamesBy::Request => {
                group = ids(event).try_into().ok().map(|[id]: [String; 1]| id);
                place.group = group.as_ref().map(|id| xxh3_64(id.as_bytes()));
            }
        }
        let thread_name = || {
            let is_of_thread = context.names_by == NamesBy::Thread;
            is_of_thread.then(|| thread.label())
        };
        let keys = &mut self.keys;
        keys.number(place, row_kind, name, || group.or_else(thread_name))
    }

    fn take_work(
        &mut self,
        event: &PlacedEvent<'_>,
        work: Work,
        (device, end_ns): (usize, i64),
        (name, key): (&str, u32),
    ) {
        let (queue_us, launch_us) = (arg(event, "queue_us"), arg(event, "host_wall_us"));
        let dur_ns = end_ns - event.ts_ns;
        let key = self.keys.of(key);
        let is_collective = matches!(work, Work::Collective | Work::CollectivePart);
        let is_communication = is_collective || key.is_communication;
        let times = (event.ts_ns, end_ns);
        let mut slice = DeviceSlice::new(number(device), times, number(event.thread));
        if let Some(queue_ns) = queue_us.map(rounded_ns).filter(|ns| *ns >= 0) {
            slice.set_launch(event.ts_ns.saturating_sub(queue_ns));
        }
        if is_communication && matches!(work, Work::Named | Work::Collective) {
            let collective = Collective::of(name, event.args());
            let by_name = || xxh3_64(name.as_bytes()).max(1);
            slice.collective = collective.map_or_else(by_name, |collective| collective.group);
        }
        slice.is_communication = is_communication;
        slice.is_short = launch_us.is_some_and(|us| dur_ns < rounded_ns(us));
        slice.is_replay = key.category == REPLAY;
        self.on_devices.push(slice);
    }

    /// Takes async work if it is a batch that an engine has given to its workers.
    fn take_batch(&mut self, event: &PlacedEvent<'_>, process: usize, end_ns: i64, key: u32) {
        if self.keys.of(key).activity == Some(Activity::Batch) && end_ns > event.ts_ns {
            self.edge(event.ts_ns, EdgeKind::Begin(Activity::Batch), process);
            self.edge(end_ns, EdgeKind::End(Activity::Batch), process);
        }
    }

    /// Takes what a process does. The steps of a runner, a worker without a device, stand for the work of one.
    fn take_activity(
        &mut self,
        devices: &Devices,
        event: &PlacedEvent<'_>,
        (process, end_ns, key): (usize, i64, u32),
    ) {
        let key_of = self.keys.of(key);
        let ids = if key_of.tells_requests {
            ids(event)
        } else {
            Vec::new()
        };
        for id in &ids {
            self.process_ids.add(process, xxh3_64(id.as_bytes()));
        }
        let is_one = |of: &Activity| *of != Activity::Batch && end_ns > event.ts_ns;
        let Some(activity) = key_of.activity.filter(is_one) else {
            return;
        };
        let hand_over = key_of.hand_over;
        self.edge(event.ts_ns, EdgeKind::Begin(activity), process);
        self.edge(end_ns, EdgeKind::End(activity), process);
        if let Some(hand_over) = hand_over {
            self.edge(event.ts_ns, hand_over, process);
        }
        let times = (event.ts_ns, end_ns);
        if activity == Activity::Step {
            let mut step = StepRecord::of_span(number(process), row(event, process), times, key);
            step.requests = number(ids.len());
            self.steps.push(step);
        }
        // Kineto shows threads of the host that it does not know under a GPU.
        let is_runner = !devices.has_device(process) && devices.device(process).is_none();
        if is_runner && matches!(activity, Activity::Step | Activity::Sample) {
            let slice = DeviceSlice::new(number(process), times, number(event.thread));
            self.on_devices.push(slice);
        }
    }

    fn edge(&mut self, ns: i64, kind: EdgeKind, process: usize) {
        self.edges.push(Edge::new(ns, kind, number(process)));
    }
}

/// A count of a counter.
fn count(event: &PlacedEvent<'_>, series: &str) -> Option<u64> {
    arg(event, series).and_then(rounded).map(u64::from)
}

fn step_tokens(event: &PlacedEvent<'_>, process: usize) -> Option<StepTokens> {
    Some(StepTokens {
        process,
        ts_ns: event.ts_ns,
        prefill: count(event, "prefill")?,
        decode: count(event, "decode")?,
    })
}

fn speculation(event: &PlacedEvent<'_>, process: usize) -> Option<StepSpeculation> {
    Some(StepSpeculation {
        process,
        drafted: count(event, "drafted")?,
        accepted: count(event, "accepted")?,
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is within the bounds of the type"
)]
fn rounded(value: f64) -> Option<u32> {
    let is_count = (0.0..=f64::from(u32::MAX)).contains(&value);
    is_count.then(|| value.round() as u32)
}
