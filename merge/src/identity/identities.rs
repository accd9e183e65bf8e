//! Recordings, pids and tids → processes and threads with ids that are unique in the trace.

use crate::clock::placement::Placement;
use crate::event::patch::Target;
use crate::fragment::exit::Exit;
use crate::fragment::liveness::boot;
use crate::fragment::recording::ForeignTrace;
use crate::identity::device_clues::mark_duplicates;
use crate::identity::devices::assign_devices;
use crate::identity::process::{
    DevicePart, Process, ProcessClock, ProcessKey, RecordingEnd, ThreadKey, TraceOrigin, TrackGroup,
};
use crate::summary::chunk_summary::{Activity, ChunkSummary};
use sa_format::{FragmentHeader, LANE_BASE, RingKind};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The properties of a recording that decide the identity of its processes.
pub(crate) struct IdentityMember<'a> {
    /// Number of the recording in the keys of its processes; further pieces of a trace use the
    /// number of the first piece.
    pub(crate) scope: usize,
    pub(crate) header: Option<&'a FragmentHeader>,
    /// Set if another profiler wrote it.
    pub(crate) foreign: Option<&'a ForeignTrace>,
    pub(crate) summary: &'a ChunkSummary,
    pub(crate) shift_ns: i64,
    pub(crate) end: RecordingEnd,
}

/// Largest kernel thread id.
const MAX_KERNEL_ID: i64 = LANE_BASE as i64;
/// Unit of `start_time` in ns. Linux has 100 clock ticks per second on every supported
/// architecture.
const TICK_NS: u64 = 10_000_000;

/// Collects the processes of all recordings in the order of the trace, and assigns ids.
pub(crate) fn processes(members: &[IdentityMember<'_>]) -> Vec<Process> {
    let mut drafts = BTreeMap::new();
    for (recording, member) in members.iter().enumerate() {
        add_recording(recording, member, &mut drafts);
    }
    name_groups(&mut drafts);
    mark_duplicates(&mut drafts);
    let mut processes: Vec<Process> = drafts.into_values().collect();
    let is_recorded = |process: &&Process| process.origin.is_none() && process.tracks.is_none();
    let mut recorded = processes.iter().filter(is_recorded);
    let has_server = recorded.any(|process| role(process) == Role::ApiServer);
    processes.sort_by(|a, b| order(a, has_server).cmp(&order(b, has_server)));
    assign_pids(&mut processes);
    processes.iter_mut().for_each(assign_tids);
    assign_devices(&mut processes);
    processes
}

/// Sets the exit that the caller saw for each process that did not record its own end. `exits` are
/// by pid.
pub(crate) fn set_exits(processes: &mut [Process], exits: &BTreeMap<i64, Exit>) {
    for process in processes {
        let end = process.end.map(|(_, end)| end);
        let is_unreported = end.is_some_and(|end| end != RecordingEnd::Reported);
        let exit = exits.get(&process.pid).filter(|_| is_unreported);
        process.exit = exit.cloned().or(process.exit.take());
    }
}

/// Sets the clock of each process.
pub(crate) fn set_clocks(processes: &mut [Process], clocks: &[Placement]) {
    for process in processes {
        process.clock = clock(process, clocks);
    }
}

/// Returns the output ids of each thread of each recording.
pub(crate) fn targets(
    processes: &[Process],
    members: &[IdentityMember<'_>],
) -> Vec<HashMap<(i64, i64), Target>> {
    let keys = processes.iter().map(|process| &process.key);
    let ordinals: BTreeMap<&ProcessKey, usize> = keys.zip(0..).collect();
    let target = |recording: usize, member: &IdentityMember<'_>, thread: (i64, i64)| {
        let key = process_key(member, thread);
        let process = &processes[*ordinals.get(&key)?];
        // Flow ids of a track belong to the process that recorded it.
        let ordinal = *ordinals.get(key.recorder()).or(ordinals.get(&key))?;
        // Flow ids of another profiler belong to its whole trace, because its flows connect
        // processes.
        let trace = member.foreign.map(|foreign| foreign.number);
        let scope = trace.map(|number| number + processes.len());
        let tid = thread_key(recording, member, thread);
        let target = Target {
            pid: process.output_pid.into(),
            tid: process.threads.get(&tid)?.output_tid.into(),
            ordinal: scope.unwrap_or(ordinal) as u64,
        };
        Some((thread, target))
    };
    let member_targets = |(recording, member): (usize, &IdentityMember<'_>)| {
        let threads = member.summary.threads.keys();
        let targets = threads.filter_map(|thread| target(recording, member, *thread));
        targets.collect()
    };
    members.iter().enumerate().map(member_targets).collect()
}

impl<'a> IdentityMember<'a> {
    /// Returns the header that identifies the process with this pid, if there is one.
    fn naming_header(&self, pid: i64) -> Option<&'a FragmentHeader> {
        let joined = self.foreign.and_then(|foreign| foreign.joined.get(&pid));
        let own = self.header.filter(|header| i64::from(header.pid) == pid);
        own.or(joined)
    }
}

fn process_key(member: &IdentityMember<'_>, thread: (i64, i64)) -> ProcessKey {
    let recorder = recorder_key(member, thread.0);
    match member.summary.tracks.get(&thread) {
        Some(track) => ProcessKey::Tracks(track.process.clone(), Box::new(recorder)),
        None => recorder,
    }
}

fn recorder_key(member: &IdentityMember<'_>, pid: i64) -> ProcessKey {
    match member.naming_header(pid) {
        Some(h) => ProcessKey::Recorded(
            h.host.clone(),
            h.boot_id.clone(),
            h.pid_ns,
            h.pid,
            h.start_time,
        ),
        None => ProcessKey::Plain(member.scope, pid),
    }
}

fn thread_key(recording: usize, member: &IdentityMember<'_>, (pid, tid): (i64, i64)) -> ThreadKey {
    match tid {
        // Recorders without thread ids write 0 for the process itself.
        0 => ThreadKey::Kernel(pid),
        tid if tid >= MAX_KERNEL_ID && member.naming_header(pid).is_some() => {
            ThreadKey::Lane(recording, tid)
        }
        tid => ThreadKey::Kernel(tid),
    }
}

fn add_recording(
    recording: usize,
    member: &IdentityMember<'_>,
    drafts: &mut BTreeMap<ProcessKey, Process>,
) {
    // Sorted, so that the same name always wins if one thread has two (tid 0 and the pid).
    let threads: BTreeMap<_, _> = member.summary.threads.iter().collect();
    for (&(pid, tid), activity) in threads {
        let key = process_key(member, (pid, tid));
        let track = member.summary.tracks.get(&(pid, tid));
        let process = drafts.entry(key.clone());
        let process = process.or_insert_with(|| new_process(key, member, pid));
        if let Some(header) = member.naming_header(pid) {
            process.main |= header.main;
            let end = (member.summary.last_ns().unwrap_or(i64::MIN), member.end);
            process.end = process.end.max(Some(end));
            process.exit = member.summary.exit.clone().or(process.exit.take());
            if header.is_named_after_parent() {
                process.fallback_name = Some(header.default_name().into_owned());
            }
        }
        let activity = activity.shifted(member.shift_ns);
        process.activity.add(&activity);
        let thread_key = thread_key(recording, member, (pid, tid));
        let thread = process.threads.entry(thread_key).or_default();
        thread.activity.add(&activity);
        thread.is_main = thread_key == ThreadKey::Kernel(pid);
        if let Some(name) = member.summary.thread_names.get(&(pid, tid)) {
            thread.name = Some(name.clone());
        }
        if let Some(name) = member.summary.process_names.get(&pid) {
            process.name = Some(name.clone());
        }
        if let Some(foreign) = member.foreign {
            let index = member.summary.hints.thread_order.get(&(pid, tid));
            thread.sort_index = index.copied().or(thread.sort_index);
            thread.id_text = foreign.texts.get(&tid).cloned();
            if let Some(categories) = foreign.track_categories.get(&(pid, tid)) {
                thread.categories.add(*categories);
            }
        }
        if let Some(track) = track {
            thread.name = Some(track.thread.clone());
            process.tracks = Some(TrackGroup {
                name: track.process.clone(),
                label: track.label.clone(),
                sort_index: track.sort_index,
            });
        }
    }
}

/// Names each group of tracks after the process that recorded it. The name may come from another
/// recording of that process.
fn name_groups(drafts: &mut BTreeMap<ProcessKey, Process>) {
    let groups = drafts.values().filter(|process| process.tracks.is_some());
    let names = groups.filter_map(|group| {
        let recorder = drafts.get(group.key.recorder())?;
        let names = (recorder.name.clone(), recorder.fallback_name.clone());
        Some((group.key.clone(), names))
    });
    let names: Vec<_> = names.collect();
    for (key, (name, fallback)) in names {
        if let Some(group) = drafts.get_mut(&key) {
            group.name = name.or(group.name.take());
            group.fallback_name = fallback.or(group.fallback_name.take());
        }
    }
}

fn new_process(key: ProcessKey, member: &IdentityMember<'_>, pid: i64) -> Process {
    let header = member.naming_header(pid);
    let start_ns =
        header.and_then(|header| i64::try_from(header.start_time.saturating_mul(TICK_NS)).ok());
    Process {
        key,
        pid,
        host: header.map(|header| header.host.clone()),
        run: header.map(|header| header.run.clone()),
        ring_in_memory: header.is_some_and(|header| header.ring == RingKind::Heap),
        main: false,
        tracks: None,
        duplicate_of: None,
        part: DevicePart::default(),
        origin: origin(member, pid)
            .filter(|_| header.is_none())
            .map(Box::new),
        clock: None,
        name: None,
        fallback_name: header.map(|header| header.default_name().into_owned()),
        activity: Activity::default(),
        end: None,
        exit: None,
        start_ns: start_ns.unwrap_or(i64::MAX),
        output_pid: 0,
        threads: BTreeMap::new(),
    }
}

/// Returns the clock of a process. An input that is a merged trace may have several clocks. Their
/// numbers come after the clocks of this merge.
fn clock(process: &Process, clocks: &[Placement]) -> Option<ProcessClock> {
    let origin = process.origin.as_ref();
    let origin_clock = || origin.and_then(|origin| origin.clock.as_ref());
    let own_boot = match process.key.recorder() {
        ProcessKey::Recorded(host, boot_id, ..) => Some((host, boot_id)),
        _ => origin_clock().map(|(host, boot_id)| (host, boot_id)),
    };
    let is_of_boot = |clock: &Placement| own_boot == Some((&clock.host, &clock.boot_id));
    let number = clocks.iter().position(is_of_boot);
    let own = number.map(|number| ProcessClock {
        number,
        uncertainty_ns: clocks[number].uncertainty_ns,
    });
    let labels = origin.and_then(|origin| origin.labels.as_deref());
    let Some(merged) = labels.and_then(ProcessClock::from_labels) else {
        return own;
    };
    let uncertainty_ns = own.map_or(Some(0), |own| own.uncertainty_ns);
    let before = merged.number.saturating_add(1);
    let before = before.saturating_mul(clocks.len().max(1));
    Some(ProcessClock {
        number: before.saturating_add(number.unwrap_or(0)),
        uncertainty_ns: uncertainty_ns
            .zip(merged.uncertainty_ns)
            .map(|(own, merged)| own.saturating_add(merged)),
    })
}

fn origin(member: &IdentityMember<'_>, pid: i64) -> Option<TraceOrigin> {
    let (foreign, hints) = (member.foreign?, &member.summary.hints);
    let index = hints.process_order.get(&pid).copied().unwrap_or(i64::MAX);
    let labels = hints.labels.get(&pid);
    Some(TraceOrigin {
        name: foreign.name.clone(),
        distinction: foreign.distinction.clone(),
        pid_text: foreign.texts.get(&pid).cloned(),
        labels: labels.filter(|text| !text.is_empty()).cloned(),
        sort_key: (foreign.number, index),
        is_kineto: foreign.is_kineto,
        is_merged: foreign.is_merged,
        clock: foreign.clock.as_ref().map(boot),
    })
}

/// Role of a process in a server, in the order in which processes are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    ApiServer,
    Engine,
    Worker,
    Unknown,
}

/// Returns the role of a process by its name. vLLM uses these names: `APIServer_1`,
/// `EngineCore_DP0`, `Worker_TP3`.
fn role(process: &Process) -> Role {
    let name = process.name.as_ref().or(process.fallback_name.as_ref());
    let name = name.map(|name| name.to_ascii_lowercase());
    match name.as_deref().unwrap_or_default() {
        name if name.starts_with("api") || name.ends_with("-api") => Role::ApiServer,
        name if name.starts_with("engine") => Role::Engine,
        name if name.starts_with("worker") => Role::Worker,
        _ => Role::Unknown,
    }
}

/// Returns the sort key of a process: foreign trace, track group, role, not main, start time, pid.
/// Without an API server, the main process comes first of all. A process without a header starts
/// with its first event.
fn order(process: &Process, has_server: bool) -> impl Ord {
    let tracks = process.tracks.as_ref();
    let origin = process.origin.as_ref().map(|origin| origin.sort_key);
    (
        origin.or(process
            .duplicate_of
            .as_ref()
            .map(|duplicate_of| duplicate_of.sort_key)),
        tracks.map(|group| (group.sort_index, group.name.as_str())),
        has_server || !process.main,
        role(process),
        !process.main,
        process.start_ns.min(process.activity.first_ns),
        process.pid,
        &process.key,
    )
}

fn kernel_id(id: i64) -> Option<u32> {
    u32::try_from(id)
        .ok()
        .filter(|id| (1..=MAX_KERNEL_ID).contains(&i64::from(*id)))
}

/// Assigns output pids: the real pid unless an earlier process has it, otherwise the lowest free
/// number.
fn assign_pids(processes: &mut [Process]) {
    let mut taken = BTreeSet::new();
    for process in &mut *processes {
        let recorded = kernel_id(process.pid).filter(|pid| taken.insert(*pid));
        process.output_pid = recorded.unwrap_or(0);
    }
    let ids = processes.iter_mut().map(|process| &mut process.output_pid);
    assign_free_ids(ids, &taken);
}

/// Assigns the lowest numbers that are not taken to ids that are 0.
fn assign_free_ids<'a>(ids: impl Iterator<Item = &'a mut u32>, taken: &BTreeSet<u32>) {
    let mut free = (1..=u32::MAX).filter(|id| !taken.contains(id));
    for id in ids.filter(|id| **id == 0) {
        *id = free.next().unwrap_or(u32::MAX);
    }
}

/// Assigns output tids. The main thread gets the pid, kernel tids stay if possible, and lanes and
/// all others get the lowest free numbers.
fn assign_tids(process: &mut Process) {
    let mut taken = BTreeSet::from([process.output_pid]);
    for (key, thread) in &mut process.threads {
        let ThreadKey::Kernel(tid) = key else {
            continue;
        };
        let recorded = kernel_id(*tid).filter(|tid| taken.insert(*tid));
        thread.output_tid = if thread.is_main {
            process.output_pid
        } else {
            recorded.unwrap_or(0)
        };
    }
    let threads = process.threads.values_mut();
    assign_free_ids(threads.map(|thread| &mut thread.output_tid), &taken);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::header;

    #[test]
    fn processes_are_sorted_by_their_role_in_a_server() {
        let sorted = |names: &[&str]| {
            let recorded = (7..).zip(names).map(|(pid, name)| {
                let mut summary = ChunkSummary::default();
                let id = i64::from(pid);
                summary.threads.insert((id, id), Activity::default());
                summary.process_names.insert(id, (*name).to_owned());
                let header = FragmentHeader {
                    main: pid == 8,
                    start_time: u64::from(pid),
                    ..header(pid)
                };
                (header, summary)
            });
            let recorded: Vec<_> = recorded.collect();
            let members = recorded.iter().map(|(header, summary)| IdentityMember {
                scope: 0,
                end: RecordingEnd::default(),
                header: Some(header),
                foreign: None,
                summary,
                shift_ns: 0,
            });
            let processes = processes(&members.collect::<Vec<_>>());
            let names = processes.into_iter().filter_map(|process| process.name);
            names.collect::<Vec<_>>().join(" ")
        };
        let vllm = [
            "EngineCore_DP0",
            "vllm",
            "Worker_TP0",
            "Worker_TP1",
            "APIServer_0",
        ];
        let expected = "APIServer_0 EngineCore_DP0 Worker_TP0 Worker_TP1 vllm";
        assert_eq!(sorted(&vllm), expected);
        let own = ["loader", "script", "worker-0", "engine"];
        assert_eq!(sorted(&own), "script engine worker-0 loader");
    }

    #[test]
    fn issue_47_a_forked_process_is_named_by_the_recorder_that_knows_its_parents_name() {
        let forked = |parent: &str| FragmentHeader {
            forked_from: Some(parent.into()),
            ..header(7)
        };
        let (unknown, known) = (forked(""), forked("worker-0"));
        let mut summary = ChunkSummary::default();
        summary.threads.insert((7, 7), Activity::default());
        let name = |headers: [&FragmentHeader; 2]| {
            let members = headers.map(|header| IdentityMember {
                scope: 0,
                end: RecordingEnd::default(),
                header: Some(header),
                foreign: None,
                summary: &summary,
                shift_ns: 0,
            });
            let process = processes(&members).remove(0);
            process.fallback_name.unwrap()
        };
        assert_eq!(name([&unknown, &known]), "worker-0 fork 7");
        assert_eq!(name([&known, &unknown]), "worker-0 fork 7");
        assert_eq!(name([&unknown, &unknown]), "python3 fork 7");
        let mut header = unknown.clone();
        header.complete_with(&known);
        assert_eq!(header.default_name(), "worker-0 fork 7");
        header.complete_with(&unknown);
        assert_eq!(header, known);
    }
}
