//! Finds processes that show a device, joins the ones that show the same device, and finds the
//! process that launched its work.

use crate::device::category::TrackUse;
use crate::device::group::{
    VendorGroup, is_of_mspti, is_plane, is_step_track, packed_pid, xla_work,
};
use crate::device::label::is_of_xla;
use crate::identity::device_clues::{Clues, drop_false_groups, npus};
use crate::identity::process::{DevicePart, Process, ProcessKey, Thread};
use std::collections::{BTreeMap, BTreeSet};

/// Kind of tracks that a process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessKind {
    Host,
    /// All tracks of a device, with work on each of them.
    Work,
    /// All tracks of a device, as XLA writes them.
    Xla,
    /// All tracks of a device. Categories distinguish work from other events.
    ByCategory,
    /// Tracks of a device and of the host.
    Mixed,
    /// A part of an NPU.
    Vendor(VendorGroup),
    /// Sampled launches of a device that another process shows.
    Sampled,
}

/// Finds the devices and sets the relation of each process and thread to them.
pub(crate) fn assign_devices(processes: &mut [Process]) {
    let mut clues: Vec<Clues> = processes.iter().map(Clues::from_process).collect();
    drop_false_groups(&mut clues);
    let npus = npus(&clues);
    let kinds: Vec<ProcessKind> = (0..processes.len())
        .map(|number| process_kind(&processes[number], &clues[number], npus[number]))
        .collect();
    let search = DeviceSearch::new(processes, &clues, &npus, &kinds);
    let parts = search.device_parts();
    let with_collectives = search.npus_with_collectives(&parts);
    for (number, part) in parts.into_iter().enumerate() {
        let process = &mut processes[number];
        let origin = process.origin.as_ref();
        let is_kineto = origin.is_some_and(|origin| origin.is_kineto);
        let has_collectives = |device| with_collectives.contains(&device);
        let shows_collectives = !part.device.is_some_and(has_collectives);
        set_track_uses(process, kinds[number], is_kineto, shows_collectives);
        process.part = DevicePart {
            is_worker: part.device.is_some() && shows_work(process, part.device == Some(number)),
            ..part
        };
    }
}

/// Returns true if a process has tracks with the work of a device.
fn shows_work(process: &Process, is_device: bool) -> bool {
    process.used_threads().any(|thread| match thread.track_use {
        TrackUse::Host | TrackUse::Regions => false,
        TrackUse::ByCategory => thread.categories.has_work(),
        TrackUse::Sampled => is_device,
        _ => true,
    })
}

fn process_kind(process: &Process, clues: &Clues, npu: Option<usize>) -> ProcessKind {
    if process.tracks.is_some() {
        return match process.duplicate_of {
            Some(_) => ProcessKind::Sampled,
            None => ProcessKind::Work,
        };
    }
    let Some(origin) = &process.origin else {
        return ProcessKind::Host;
    };
    let is_device = |thread: &Thread| thread.categories.is_device(origin.is_kineto);
    match (clues.group, &clues.label) {
        _ if !clues.sampled_from.is_empty() => ProcessKind::Sampled,
        // Recorded by us, and written by an earlier merge.
        _ if clues.scope.is_none() => match clues.is_labelled {
            true => ProcessKind::Work,
            false => ProcessKind::Host,
        },
        (Some(VendorGroup::Host), _) => ProcessKind::Host,
        (Some(group), _) => ProcessKind::Vendor(group),
        (None, Some(_)) if npu.is_some() => ProcessKind::Vendor(VendorGroup::Derived),
        (None, Some(_)) if process.name.as_deref().is_some_and(is_of_xla) => ProcessKind::Xla,
        (None, Some(_)) => {
            let categories = clues.categories;
            match categories.is_kineto() || categories.any() && origin.is_kineto {
                true => ProcessKind::ByCategory,
                false => ProcessKind::Work,
            }
        }
        (None, None) if clues.is_host => ProcessKind::Host,
        (None, None) => match process.threads.values().any(|thread| is_device(thread)) {
            true => ProcessKind::Mixed,
            false => ProcessKind::Host,
        },
    }
}

/// Hints and kinds of all processes, and indexes of some of them.
struct DeviceSearch<'a> {
    processes: &'a [Process],
    clues: &'a [Clues],
    npus: &'a [Option<usize>],
    kinds: &'a [ProcessKind],
    numbers: BTreeMap<&'a ProcessKey, usize>,
    /// Host process of a scope, and host process of each owner of groups there. `None` if it is
    /// ambiguous.
    hosts: BTreeMap<(u64, Option<i64>), Option<usize>>,
    /// First host process with a pid from an earlier merge, by file and scope.
    hosts_by_label_pid: BTreeMap<(Option<usize>, Option<u64>, &'a str), usize>,
    /// Hardware groups by file, input of an earlier merge and owner.
    hardware: BTreeMap<(Option<usize>, &'a str, i64), Vec<usize>>,
}

impl<'a> DeviceSearch<'a> {
    fn new(
        processes: &'a [Process],
        clues: &'a [Clues],
        npus: &'a [Option<usize>],
        kinds: &'a [ProcessKind],
    ) -> DeviceSearch<'a> {
        let keys = processes.iter().map(|process| &process.key);
        let mut search = DeviceSearch {
            processes,
            clues,
            npus,
            kinds,
            numbers: keys.zip(0..).collect(),
            hosts: BTreeMap::new(),
            hosts_by_label_pid: BTreeMap::new(),
            hardware: BTreeMap::new(),
        };
        let mut hosts: BTreeMap<(u64, Option<i64>), Vec<usize>> = BTreeMap::new();
        for (number, clues) in clues.iter().enumerate() {
            let (is_host, file) = (kinds[number] == ProcessKind::Host, search.file(number));
            if let Some(pid) = clues.label_pid.as_deref().filter(|_| is_host) {
                let key = (file, clues.scope, pid);
                search.hosts_by_label_pid.entry(key).or_insert(number);
            }
            let is_known = clues.is_host || clues.categories.has_host() || clues.group.is_some();
            if let Some(scope) = clues.scope.filter(|_| is_host && is_known) {
                let owner = packed_pid(clues.pid, None);
                for owner in [None].into_iter().chain(owner.map(Some)) {
                    hosts.entry((scope, owner)).or_default().push(number);
                }
            }
            if clues.group == Some(VendorGroup::Hardware)
                && let Some(owner) = clues.owner()
            {
                let key = (file, clues.trace.as_str(), owner);
                search.hardware.entry(key).or_default().push(number);
            }
        }
        let hosts = hosts.into_iter();
        let hosts = hosts.map(|(key, hosts)| (key, single_host(clues, &hosts)));
        search.hosts = hosts.collect();
        search
    }

    /// Returns the number of the file that a process of another profiler comes from.
    fn file(&self, number: usize) -> Option<usize> {
        let origin = self.processes[number].origin.as_ref();
        origin.map(|origin| origin.sort_key.0)
    }

    fn device_parts(&self) -> Vec<DevicePart> {
        let recorder = |number: usize| {
            let recorder = self.numbers.get(self.processes[number].key.recorder());
            recorder.copied().filter(|recorder| *recorder != number)
        };
        let mut parts: Vec<DevicePart> = (0..self.processes.len())
            .map(|number| DevicePart {
                device: self.device(number),
                is_track_group: !matches!(
                    self.kinds[number],
                    ProcessKind::Host | ProcessKind::Mixed
                ),
                label: self.label(number),
                host: recorder(number)
                    .or_else(|| self.host(number))
                    .or((self.kinds[number] == ProcessKind::Mixed).then_some(number)),
                scope: self.clues[number].scope,
                ..DevicePart::default()
            })
            .collect();
        for number in 0..parts.len() {
            if let (Some(host), Some(_)) = (parts[number].host, parts[number].device) {
                parts[host].has_device = true;
            }
        }
        // The process that recorded a device's sampled launches is the best match for its host.
        for number in 0..parts.len() {
            if self.kinds[number] == ProcessKind::Sampled
                && let Some(device) = parts[number].device
            {
                parts[device].host = parts[number].host.or(parts[device].host);
            }
        }
        parts
    }

    /// Returns the device whose tracks a process has.
    fn device(&self, number: usize) -> Option<usize> {
        let mut threads = self.processes[number].used_threads();
        let is_one = match self.kinds[number] {
            ProcessKind::Host => false,
            ProcessKind::Vendor(_) => return self.npus[number],
            ProcessKind::Sampled => return self.whole_device(number).or(Some(number)),
            // Our own tracks count even if nothing was recorded on them.
            ProcessKind::Work if self.clues[number].scope.is_none() => true,
            ProcessKind::Work | ProcessKind::Xla => threads.next().is_some(),
            // Kineto labels GPUs that did nothing. It shows host threads that it does not know on
            // the tracks of the first GPU.
            ProcessKind::ByCategory | ProcessKind::Mixed => {
                threads.any(|thread| thread.categories.has_work())
            }
        };
        is_one.then_some(number)
    }

    /// Returns the device whose launches a process has sampled.
    fn whole_device(&self, number: usize) -> Option<usize> {
        let process = &self.processes[number];
        if let Some(duplicate_of) = &process.duplicate_of {
            return self.npus[*self.numbers.get(&duplicate_of.hardware)?];
        }
        let sampled = &self.clues[number];
        let label = sampled.label.as_ref()?;
        let trace = sampled.sampled_from.as_str();
        let key = (self.file(number), trace, sampled.pid);
        let names = |whole: &&usize| {
            let whole = self.clues[**whole].label.as_ref();
            whole.is_some_and(|whole| whole.names(label))
        };
        let whole = self.hardware.get(&key)?.iter().find(names)?;
        self.npus[*whole]
    }

    /// Returns the label of the device, unless the name of the process contains it.
    fn label(&self, number: usize) -> Option<String> {
        let clues = &self.clues[number];
        let label = match &clues.label {
            Some(label) => label.to_string(),
            None if clues.is_npu_work() => "NPU".to_owned(),
            None => return None,
        };
        let name = self.processes[number].name.as_deref().unwrap_or("");
        let found = name.match_indices(&label);
        let mut rests = found.map(|(at, _)| &name[at + label.len()..]);
        let has_label = rests.any(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()));
        let is_named = !clues.is_labelled && clues.label.is_some() || has_label;
        (!is_named && self.kinds[number] != ProcessKind::Host).then_some(label)
    }

    /// Returns the process that launched the work of a device, or the process that a group of the
    /// host belongs to.
    fn host(&self, number: usize) -> Option<usize> {
        let clues = &self.clues[number];
        let is_host = self.kinds[number] == ProcessKind::Host;
        if is_host && clues.group != Some(VendorGroup::Host) {
            return None;
        }
        let host_by_label = || {
            let pid = clues.label_pid.as_deref().filter(|_| !is_host)?;
            let key = (self.file(number), clues.scope, pid);
            self.hosts_by_label_pid.get(&key).copied()
        };
        let host_by_scope = || {
            let owner = clues.owner().filter(|_| clues.group.is_some());
            let owner_host = |owner| self.hosts.get(&(clues.scope?, owner));
            *owner
                .and_then(|owner| owner_host(Some(owner)))
                .or_else(|| owner_host(None))?
        };
        host_by_label().or_else(host_by_scope)
    }

    /// Returns the NPUs whose collectives have tracks of their own.
    fn npus_with_collectives(&self, parts: &[DevicePart]) -> BTreeSet<usize> {
        let numbers = 0..self.processes.len();
        let has_some = |number: &usize| {
            let is_communication =
                self.kinds[*number] == ProcessKind::Vendor(VendorGroup::Communication);
            is_communication && has_collectives(&self.processes[*number])
        };
        let with_some = numbers.filter(has_some);
        with_some
            .filter_map(|number| parts[number].device)
            .collect()
    }
}

/// Returns the host process if it is unambiguous. Groups such as `CANN` only count if there is no
/// other process.
fn single_host(clues: &[Clues], hosts: &[usize]) -> Option<usize> {
    let is_plain = |host: &&usize| clues[**host].group.is_none();
    let plain: Vec<&usize> = hosts.iter().filter(is_plain).collect();
    match (plain.as_slice(), hosts) {
        ([host], _) => Some(**host),
        ([], [host]) => Some(*host),
        _ => None,
    }
}

/// Returns true if a communication group shows whole collectives, and not only their parts.
fn has_collectives(process: &Process) -> bool {
    let mut threads = process.used_threads();
    threads.any(|thread| !is_plane(thread_name(thread)))
}

fn thread_name(thread: &Thread) -> &str {
    thread.name.as_deref().unwrap_or("")
}

fn set_track_uses(
    process: &mut Process,
    kind: ProcessKind,
    is_kineto: bool,
    shows_collectives: bool,
) {
    let is_xla_work =
        (kind == ProcessKind::Xla).then(|| xla_work(process.used_threads().map(thread_name)));
    let has_collectives = has_collectives(process);
    for thread in process.threads.values_mut() {
        let name = thread_name(thread);
        let regions_unless = |is_work: bool, track_use: TrackUse| match is_work {
            true => track_use,
            false => TrackUse::Regions,
        };
        thread.track_use = match kind {
            ProcessKind::Host => TrackUse::Host,
            ProcessKind::Work | ProcessKind::Sampled if is_of_mspti(name) => TrackUse::Regions,
            ProcessKind::Work => TrackUse::Work,
            ProcessKind::Xla => regions_unless(
                is_xla_work.is_some_and(|is_work| is_work(name)),
                TrackUse::Work,
            ),
            ProcessKind::ByCategory if thread.categories.is_host() => TrackUse::Host,
            ProcessKind::Mixed if !thread.categories.is_device(is_kineto) => TrackUse::Host,
            ProcessKind::ByCategory | ProcessKind::Mixed => TrackUse::ByCategory,
            ProcessKind::Sampled => TrackUse::Sampled,
            ProcessKind::Vendor(VendorGroup::Hardware) => {
                regions_unless(!is_step_track(name), TrackUse::Tasks { shows_collectives })
            }
            ProcessKind::Vendor(VendorGroup::Communication) => match is_plane(name) {
                true => regions_unless(!has_collectives, TrackUse::CollectiveParts),
                false => TrackUse::Collectives,
            },
            ProcessKind::Vendor(_) => TrackUse::Regions,
        };
    }
}
