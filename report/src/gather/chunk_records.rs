//! Records of the events in one chunk.

use super::device_slice::{DeviceSlice, LaunchEnd};
use super::edge::{Edge, EdgeKind, number};
use super::event_times::{EventTimes, RunParts};
use super::name_keys::{NameKeys, NamePlace};
use super::process_ids::ProcessIds;
use super::prompt_blocks::{self, Prompt};
use super::reasons::Reasons;
use super::request_moment::{
    ProcessRun, RequestEvent, RequestMoment, RequestToken, arg, ids, is_instant, moment,
    request_key, rounded_ns,
};
use super::request_output::{Pauses, RequestOutput, outputs};
use super::settings_record::settings;
use super::slice_record::{MOST_OPEN, OpenSpan, SliceRecord, track_id};
use super::step_record::{StepRecord, StepSpeculation, StepTokens, step_number};
use crate::options::NamesBy;
use crate::table::{Activity, RowKind};
use sa_format::{ENGINE_SETTINGS, Phase};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use trace_merge::collective::Collective;
use trace_merge::events::{Devices, EventUse, PlacedEvent, TraceThread, Work};
use xxhash_rust::xxh3::xxh3_64;

/// Category of a graph replay on a device (FORMAT.md §2).
const REPLAY: &str = "graph";

/// End of the names of spans in which an engine starts up. A server is ready when the last one before its first request
/// ends.
const START_UP: &str = ".__init__";

/// Information about the run that is needed to read a chunk.
pub(crate) struct ChunkContext<'a> {
    pub(crate) threads: &'a [TraceThread],
    pub(crate) names_by: NamesBy,
    pub(crate) devices: &'a Devices,
    /// The number of each process's run. Processes beyond its end belong to run 0.
    pub(crate) runs: &'a [u64],
    pub(crate) parts: RunParts,
}

/// Records of one chunk.
#[derive(Default)]
pub(crate) struct ChunkRecords {
    pub(crate) keys: NameKeys,
    /// Slices, with the chunk's own key numbers.
    pub(crate) slices: Vec<SliceRecord>,
    pub(crate) on_devices: Vec<DeviceSlice>,
    pub(crate) launch_ends: Vec<LaunchEnd>,
    pub(crate) edges: Vec<Edge>,
    /// Keys of spans without an end.
    pub(crate) unfinished: Vec<u32>,
    /// The first [`MOST_OPEN`] spans without an end.
    pub(crate) open: Vec<OpenSpan>,
    /// Events of requests, with the chunk's own reason numbers.
    pub(crate) moments: Vec<RequestMoment>,
    pub(crate) reasons: Reasons,
    pub(crate) tokens: Vec<RequestToken>,
    pub(crate) outputs: Vec<RequestOutput>,
    pub(crate) pauses: Pauses,
    /// Request ids by hash.
    pub(crate) requests: HashMap<u64, String>,
    pub(crate) process_ids: ProcessIds,
    /// Steps, with the chunk's own key numbers.
    pub(crate) steps: Vec<StepRecord>,
    pub(crate) step_tokens: Vec<StepTokens>,
    pub(crate) speculations: Vec<StepSpeculation>,
    /// End times of the spans in which engines start up.
    pub(crate) ready: Vec<i64>,
    /// Prompts with the hashes of their blocks.
    pub(crate) prompts: Vec<(Prompt, Vec<u64>)>,
    /// Settings of engines, each with its process number.
    pub(crate) settings: Vec<(usize, BTreeMap<String, Value>)>,
    pub(crate) event_times: EventTimes,
}

impl ChunkRecords {
    /// Adds what one event of the chunk contributes to these records, such as a slice, a flow end or counter values.
    pub(crate) fn add_event(&mut self, context: &ChunkContext<'_>, event: &PlacedEvent<'_>) {
        let process = context.threads[event.thread].process;
        self.add_times(context, event, process);
        match event.phase {
            Phase::Complete | Phase::Begin | Phase::AsyncBegin => {
                self.add_slice(context, event, process);
            }
            Phase::Counter => self.add_counts(event, process),
            Phase::Instant
            | Phase::LegacyInstant
            | Phase::AsyncInstant
            | Phase::End
            | Phase::AsyncEnd => {
                self.add_moments(context, event, &event.name(), process);
            }
            Phase::FlowStart | Phase::FlowStep | Phase::FlowEnd => {
                let end = LaunchEnd::from_flow(context.devices, event, process);
                self.launch_ends.extend(end);
            }
            Phase::Metadata if event.name() == ENGINE_SETTINGS => {
                self.settings.push((process, settings(event)));
            }
            _ => {}
        }
    }

    /// Adds the times at which the process certainly ran. The start of async work is not such a time, because a request
    /// can wait in the kernel before its process receives it.
    fn add_times(&mut self, context: &ChunkContext<'_>, event: &PlacedEvent<'_>, process: usize) {
        let (parts, process) = (context.parts, number(process));
        let is_async = context.threads[event.thread].is_lane || event.phase == Phase::AsyncBegin;
        if !is_async {
            self.event_times.add(parts, process, event.ts_ns);
        }
        if let Some(end_ns) = event.end_ns().filter(|_| !event.is_unfinished()) {
            self.event_times.add(parts, process, end_ns);
        }
    }

    /// Adds what an event says about requests: their moments and tokens, or the hashed blocks of a prompt.
    fn add_moments(
        &mut self,
        context: &ChunkContext<'_>,
        event: &PlacedEvent<'_>,
        name: &str,
        process: usize,
    ) {
        let process_run = ProcessRun {
            process: number(process),
            run: context.runs.get(process).copied().unwrap_or(0),
        };
        if name == prompt_blocks::NAME && is_instant(event.phase) {
            let prompt = prompt_blocks::prompt(event, process_run);
            return self.prompts.extend(prompt);
        }
        let found = moment(event, name, process_run.process, &mut self.reasons);
        let Some((moment, ids)) = found else {
            return;
        };
        for id in ids {
            let request = request_key(&id, process_run.run);
            self.requests.entry(request).or_insert(id);
            match moment {
                RequestEvent::Moment(moment) => {
                    self.moments.push(RequestMoment { request, ..moment });
                }
                RequestEvent::Token(token) => self.tokens.push(RequestToken { request, ..token }),
            }
        }
    }

    /// Adds the numbers of requests in a scheduler, and the use of its KV cache.
    fn add_counts(&mut self, event: &PlacedEvent<'_>, process: usize) {
        let series = |name| arg::<f64>(event, name);
        let counts = match &*event.name() {
            "requests" => vec![
                (EdgeKind::Running, series("running")),
                (EdgeKind::Waiting, series("waiting")),
            ],
            "kv_cache" => vec![(
                EdgeKind::KvUsed,
                series("used_percent").map(|percent| 10.0 * percent),
            )],
            "kv_blocks" => {
                let blocks = series("used").zip(series("free"));
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

    /// Adds a span: what it says about requests, its slice, and what follows from the slice, such as device work or an
    /// activity. A span without an end has no slice and is recorded as unfinished instead.
    fn add_slice(&mut self, context: &ChunkContext<'_>, event: &PlacedEvent<'_>, process: usize) {
        let (name, category) = (event.name(), event.category());
        self.add_moments(context, event, &name, process);
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
                self.open.push(OpenSpan::from_event(event, &name, process));
            }
            return;
        };
        let end_ns = end_ns.max(event.ts_ns);
        if name.ends_with(START_UP) {
            self.ready.push(end_ns);
        }
        self.slices.push(SliceRecord {
            track: track_id(event, process),
            start_ns: event.ts_ns,
            end_ns: Reverse(end_ns),
            key,
            cpu_ns: event.cpu_ns().unwrap_or(-1),
        });
        match (event_use, row_kind) {
            (EventUse::Work(work), _) => {
                let device = context.devices.device(process).unwrap_or(process);
                self.add_work(event, work, (device, end_ns), (&name, key));
                let ends = LaunchEnd::from_args(context.devices, event, process, None);
                self.launch_ends.extend(ends);
            }
            (EventUse::Region, _) => {}
            (EventUse::Host, RowKind::Async) => {
                self.add_batch(context.devices, event, (process, end_ns, key));
            }
            (EventUse::Host, _) => {
                let span = (process, end_ns, key);
                self.add_launch(context.devices, event, span);
                self.add_activity(context.devices, event, span);
            }
        }
    }

    /// Records that a host span launches device work, if its category shows that, and adds the calls that its args
    /// number. The last argument contains the process number, the end of the span in ns and the number of its name key.
    fn add_launch(
        &mut self,
        devices: &Devices,
        event: &PlacedEvent<'_>,
        (process, end_ns, key): (usize, i64, u32),
    ) {
        let key = self.keys.get(key);
        let may_launch = devices.may_launch(process, &key.category);
        if devices.has_device(process) && key.is_launch {
            self.edge(event.ts_ns, EdgeKind::Launch, process);
        }
        if may_launch {
            let dur_ns = Some(end_ns - event.ts_ns);
            let ends = LaunchEnd::from_args(devices, event, process, dur_ns);
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
            let is_by_thread = context.names_by == NamesBy::Thread;
            is_by_thread.then(|| thread.label())
        };
        let keys = &mut self.keys;
        keys.number(place, row_kind, name, || group.or_else(thread_name))
    }

    /// Adds a slice of work that ran on a device. `end_ns` is its end, and `key` is the number of its name key.
    fn add_work(
        &mut self,
        event: &PlacedEvent<'_>,
        work: Work,
        (device, end_ns): (usize, i64),
        (name, key): (&str, u32),
    ) {
        let (queue_us, launch_us) = (arg(event, "queue_us"), arg(event, "host_wall_us"));
        let dur_ns = end_ns - event.ts_ns;
        let key = self.keys.get(key);
        let is_collective = matches!(work, Work::Collective | Work::CollectivePart);
        let is_communication = is_collective || key.is_communication;
        let times = (event.ts_ns, end_ns);
        let mut slice = DeviceSlice::new(number(device), times, number(event.thread));
        if let Some(queue_ns) = queue_us.map(rounded_ns).filter(|ns| *ns >= 0) {
            slice.set_launch(event.ts_ns.saturating_sub(queue_ns));
        }
        if is_communication && matches!(work, Work::Named | Work::Collective) {
            let collective = Collective::from_event(name, event.args());
            let by_name = || xxh3_64(name.as_bytes()).max(1);
            slice.collective = collective.map_or_else(by_name, |collective| collective.group);
        }
        slice.is_communication = is_communication;
        slice.is_short = launch_us.is_some_and(|us| dur_ns < rounded_ns(us));
        slice.is_replay = key.category == REPLAY;
        self.on_devices.push(slice);
    }

    /// Adds async work if it is a batch that an engine has handed to its workers. The last argument contains the process
    /// number, the end of the batch in ns and the number of its name key.
    fn add_batch(
        &mut self,
        devices: &Devices,
        event: &PlacedEvent<'_>,
        (process, end_ns, key): (usize, i64, u32),
    ) {
        if self.keys.get(key).activity == Some(Activity::Batch) && end_ns > event.ts_ns {
            self.edge(event.ts_ns, EdgeKind::Begin(Activity::Batch), process);
            self.edge(end_ns, EdgeKind::End(Activity::Batch), process);
            self.add_runner(devices, event, (process, end_ns), true);
        }
    }

    /// Adds an activity of a process. A worker without a recorded device is a runner; its steps are used in place of
    /// device work.
    fn add_activity(
        &mut self,
        devices: &Devices,
        event: &PlacedEvent<'_>,
        (process, end_ns, key): (usize, i64, u32),
    ) {
        let name_key = self.keys.get(key);
        let ids = if name_key.names_requests {
            ids(event)
        } else {
            Vec::new()
        };
        for id in &ids {
            self.process_ids.add(process, xxh3_64(id.as_bytes()));
        }
        let is_counted = |activity: &Activity| *activity != Activity::Batch && end_ns > event.ts_ns;
        let Some(activity) = name_key.activity.filter(is_counted) else {
            return;
        };
        let hand_over = name_key.hand_over;
        let begin = Edge::new(event.ts_ns, EdgeKind::Begin(activity), number(process));
        let step = step_number(event).filter(|_| activity == Activity::Step);
        self.edges.push(Edge {
            value: step.map_or(0, edge_value),
            ..begin
        });
        self.edge(end_ns, EdgeKind::End(activity), process);
        if let Some(hand_over) = hand_over {
            self.edge(event.ts_ns, hand_over, process);
        }
        let times = (event.ts_ns, end_ns);
        if activity == Activity::Step {
            let mut step =
                StepRecord::from_span(number(process), track_id(event, process), times, key);
            step.requests = number(ids.len());
            self.steps.push(step);
        }
        if matches!(activity, Activity::Step | Activity::Sample) {
            let is_part = activity == Activity::Sample;
            self.add_runner(devices, event, (process, end_ns), is_part);
        }
    }

    /// Adds a step of a worker, or with `is_part` a part of one, in place of device work. Does nothing if a device of
    /// the process is recorded. `end_ns` is the end in ns.
    fn add_runner(
        &mut self,
        devices: &Devices,
        event: &PlacedEvent<'_>,
        (process, end_ns): (usize, i64),
        is_part: bool,
    ) {
        // Kineto assigns host threads that it does not know to a GPU.
        if !devices.has_device(process) && devices.device(process).is_none() {
            let times = (event.ts_ns, end_ns);
            let mut slice = DeviceSlice::new(number(process), times, number(event.thread));
            slice.is_part = is_part;
            self.on_devices.push(slice);
        }
    }

    /// Adds a change of a process at a time in ns, such as the start of an activity.
    fn edge(&mut self, ns: i64, kind: EdgeKind, process: usize) {
        self.edges.push(Edge::new(ns, kind, number(process)));
    }
}

/// Converts a step number to the value of an edge. It is not 0, which stands for no number.
fn edge_value(step: u64) -> u32 {
    u32::try_from(step.saturating_add(1)).unwrap_or(u32::MAX)
}

/// Returns the value of one series of a counter event, rounded to a whole number. Returns `None` if the value is
/// missing, negative or over `u32::MAX`.
fn count(event: &PlacedEvent<'_>, series: &str) -> Option<u64> {
    arg(event, series).and_then(rounded).map(u64::from)
}

/// Reads the token counts of a step from an engine's `tokens` counter. Returns `None` if one of them is missing or
/// invalid, and for a step without tokens, which only keeps an idle rank in time with the others.
fn step_tokens(event: &PlacedEvent<'_>, process: usize) -> Option<StepTokens> {
    let (prefill, decode) = (count(event, "prefill")?, count(event, "decode")?);
    (prefill + decode > 0).then_some(StepTokens {
        process,
        ts_ns: event.ts_ns,
        prefill,
        decode,
    })
}

/// Reads the counts of speculated tokens in a step from an engine's `speculation` counter. Returns `None` if one of
/// them is missing or invalid.
fn speculation(event: &PlacedEvent<'_>, process: usize) -> Option<StepSpeculation> {
    Some(StepSpeculation {
        process,
        drafted: count(event, "drafted")?,
        accepted: count(event, "accepted")?,
    })
}

/// Rounds a count to a whole number. Returns `None` if it is negative or over `u32::MAX`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is within the bounds of the type"
)]
fn rounded(value: f64) -> Option<u32> {
    let is_count = (0.0..=f64::from(u32::MAX)).contains(&value);
    is_count.then(|| value.round() as u32)
}
