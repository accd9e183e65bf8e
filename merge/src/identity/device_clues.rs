//! Properties of another profiler's processes that identify their device. They decide which groups
//! of tracks show the same NPU, and which of our own tracks are duplicates.

use crate::device::category::TrackCategories;
use crate::device::group::{VendorGroup, packed_pid, vendor_group};
use crate::device::label::{DeviceLabel, LabelNotes, is_of_host};
use crate::identity::process::{DuplicateOf, Process, ProcessKey, TraceOrigin};
use std::collections::{BTreeMap, BTreeSet};
use xxhash_rust::xxh3::xxh3_64;

/// Hints in the names, labels and categories of a process of another profiler.
#[derive(Debug, Default)]
pub(super) struct Clues {
    /// Hash of the trace that it comes from and of its rank there: device numbers and launch ids
    /// are only unique within these. `None` for processes recorded by us, also if they come from a
    /// merged trace.
    pub(super) scope: Option<u64>,
    pub(super) label: Option<DeviceLabel>,
    /// True if its labels name the device, false if its own name does.
    pub(super) is_labelled: bool,
    pub(super) group: Option<VendorGroup>,
    /// Its pid in the trace that it was recorded in.
    pub(super) pid: i64,
    /// Pid, or text instead of it, and host that an earlier merge wrote into the label.
    pub(super) label_pid: Option<String>,
    pub(super) is_host: bool,
    pub(super) categories: TrackCategories,
    /// Input of an earlier merge that it comes from. Empty for processes recorded by us.
    pub(super) trace: String,
    /// Trace with all kernels of this device. Empty if there is none.
    pub(super) sampled_from: String,
}

impl Clues {
    /// Collects the hints of a process. Processes recorded by us have none.
    pub(super) fn from_process(process: &Process) -> Clues {
        let Some(origin) = &process.origin else {
            return Clues::default();
        };
        let name = process.name.as_deref().or(process.fallback_name.as_deref());
        let (name, labels) = (name.unwrap_or(""), origin.labels.as_deref().unwrap_or(""));
        let is_host = is_of_host(labels);
        let from_labels = DeviceLabel::in_labels(labels);
        let is_labelled = from_labels.is_some();
        let label = from_labels.or_else(|| DeviceLabel::in_name(name).filter(|_| !is_host));
        let mut categories = TrackCategories::default();
        for thread in process.threads.values() {
            categories.add(thread.categories);
        }
        let is_npu = |label: &DeviceLabel| label.kind == "NPU";
        let group = vendor_group(name).filter(|group| match group {
            VendorGroup::Host => !is_labelled,
            _ => !is_host && label.as_ref().is_none_or(is_npu),
        });
        let notes = LabelNotes::parse(labels);
        let scope = scope(origin, &notes);
        Clues {
            scope,
            label,
            is_labelled,
            group: group.filter(|_| scope.is_some()),
            pid: notes.pid_number().unwrap_or(process.pid),
            label_pid: notes.pid.map(str::to_owned),
            is_host,
            categories,
            trace: notes.trace,
            sampled_from: notes.sampled_from,
        }
    }

    /// Returns the number of the device.
    pub(super) fn number(&self) -> Option<u32> {
        self.label.as_ref()?.number
    }

    /// Returns the pid of the process that a group belongs to, if its own pid contains it.
    pub(super) fn owner(&self) -> Option<i64> {
        packed_pid(self.pid, self.number())
    }

    /// Returns true if the tracks of its group show the work of an NPU.
    pub(super) fn is_npu_work(&self) -> bool {
        matches!(
            self.group,
            Some(VendorGroup::Hardware | VendorGroup::Communication)
        )
    }

    /// Returns true if it is a part of an NPU.
    pub(super) fn is_of_npu(&self) -> bool {
        let is_npu = self.label.as_ref().is_some_and(|label| label.kind == "NPU");
        is_npu || self.group.is_some_and(|group| group != VendorGroup::Host)
    }
}

/// Removes groups that only share a name with the vendor's, such as `Communication` in an unrelated
/// trace. These have no label, and the trace does not have the tasks of an NPU.
pub(super) fn drop_false_groups(clues: &mut [Clues]) {
    let is_hardware = |clues: &&Clues| clues.group == Some(VendorGroup::Hardware);
    let with_npu = clues.iter().filter(is_hardware);
    let with_npu: BTreeSet<Option<u64>> = with_npu.map(|clues| clues.scope).collect();
    for clues in clues {
        let has_name_only = clues.label.is_none() && !with_npu.contains(&clues.scope);
        clues.group = clues.group.filter(|_| !has_name_only);
    }
}

/// Returns a hash of the trace that a process of another profiler comes from, and of its rank
/// there. SGLang merges the traces of ranks and writes the rank before the pid.
fn scope(origin: &TraceOrigin, notes: &LabelNotes<'_>) -> Option<u64> {
    if origin.is_merged && notes.trace.is_empty() {
        return None;
    }
    let text = notes.pid.or(origin.pid_text.as_deref());
    let rank = text.and_then(|text| text.strip_prefix('[')?.split_once(']'));
    let rank = rank.map_or("", |(rank, _)| rank);
    let trace = Some(notes.trace.as_str()).filter(|_| origin.is_merged);
    let scope = format!("{}\n{rank}\n{}", origin.sort_key.0, trace.unwrap_or(""));
    Some(xxh3_64(scope.as_bytes()))
}

/// A scope, the owner of a group and the number of an NPU. `None` matches any value, and
/// `Some(None)` matches groups that do not have the value.
type GroupKey = (Option<u64>, Option<Option<i64>>, Option<Option<u32>>);

/// Groups with work that may be of the same NPU.
#[derive(Clone, Copy)]
struct WorkGroups {
    /// The first group: groups with a number come first, then the order is by group and process.
    first: (bool, Option<VendorGroup>, usize),
    /// The smallest and the largest number of an NPU.
    numbers: Option<(u32, u32)>,
}

impl WorkGroups {
    fn new(process: usize, clues: &Clues) -> WorkGroups {
        let number = clues.number();
        WorkGroups {
            first: (number.is_none(), clues.group, process),
            numbers: number.map(|number| (number, number)),
        }
    }

    fn merge(self, other: WorkGroups) -> WorkGroups {
        let numbers = self.numbers.into_iter().chain(other.numbers);
        WorkGroups {
            first: self.first.min(other.first),
            numbers: numbers.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))),
        }
    }
}

/// Returns the NPU that each process is a part of, as the number of the first process that shows
/// its work.
pub(super) fn npus(clues: &[Clues]) -> Vec<Option<usize>> {
    let mut works: BTreeMap<GroupKey, WorkGroups> = BTreeMap::new();
    let numbered = clues.iter().enumerate();
    for (process, clues) in numbered.clone().filter(|(_, clues)| clues.is_npu_work()) {
        let work = WorkGroups::new(process, clues);
        for owner in [None, Some(clues.owner())] {
            for number in [None, Some(clues.number())] {
                let found = works.entry((clues.scope, owner, number)).or_insert(work);
                *found = found.merge(work);
            }
        }
    }
    let npu = |(process, clues): (usize, &Clues)| {
        if !clues.is_of_npu() {
            return None;
        }
        let owners = matching_keys(clues.owner()).into_iter();
        let pairs =
            owners.flat_map(|owner| matching_keys(clues.number()).map(|number| (owner, number)));
        let shared = pairs.filter_map(|(owner, number)| works.get(&(clues.scope, owner, number)));
        let shared = shared.copied().reduce(WorkGroups::merge)?;
        let is_one = shared.numbers.is_none_or(|(least, most)| least == most);
        match clues.number().is_some() || is_one {
            true => Some(shared.first.2),
            false => clues.is_npu_work().then_some(process),
        }
    };
    numbered.map(npu).collect()
}

/// Returns the keys to look up for a group: groups with the same value or without one. If the group
/// has no value, all groups match.
fn matching_keys<T: Copy>(value: Option<T>) -> [Option<Option<T>>; 2] {
    match value {
        Some(_) => [Some(value), Some(None)],
        None => [None; 2],
    }
}

/// A device as the vendor's profiler shows it.
struct Device {
    label: DeviceLabel,
    time_ns: (i64, i64),
    duplicate_of: DuplicateOf,
}

/// Marks our own groups of tracks as duplicates if the vendor's profiler recorded the same device
/// at the same time.
pub(crate) fn mark_duplicates(processes: &mut BTreeMap<ProcessKey, Process>) {
    let mut devices: BTreeMap<i64, Vec<Device>> = BTreeMap::new();
    for (pid, device) in processes.values().filter_map(vendor_device) {
        devices.entry(pid).or_default().push(device);
    }
    for process in processes.values_mut() {
        let Some(group) = &process.tracks else {
            continue;
        };
        let Some(label) = DeviceLabel::in_labels(&group.label) else {
            continue;
        };
        let activity = process.activity;
        let is_same = |device: &&Device| {
            let overlaps =
                device.time_ns.0 <= activity.last_ns && activity.first_ns <= device.time_ns.1;
            overlaps && device.label.names(&label)
        };
        let mut with_pid = devices.get(&process.pid).into_iter().flatten();
        let found = with_pid.find(is_same);
        process.duplicate_of = found.map(|device| Box::new(device.duplicate_of.clone()));
    }
}

/// Returns the device that a process shows, and the pid of its host.
fn vendor_device(process: &Process) -> Option<(i64, Device)> {
    let origin = process.origin.as_ref()?;
    let label = DeviceLabel::in_labels(origin.labels.as_deref()?)?;
    let is_hardware = process.name.as_deref().and_then(vendor_group) == Some(VendorGroup::Hardware);
    let pid = packed_pid(process.pid, label.number).filter(|_| is_hardware)?;
    let device = Device {
        label,
        time_ns: (process.activity.first_ns, process.activity.last_ns),
        duplicate_of: DuplicateOf {
            trace: origin.name.clone(),
            hardware: process.key.clone(),
            sort_key: origin.sort_key,
        },
    };
    Some((pid, device))
}
