//! The devices of a trace, and which of its events are their work.

use crate::app::report::ProcessReport;
use crate::device::category::{CategoryUse, TrackUse, category_use, is_runtime};
use crate::device::group::{is_idle_name, is_idle_task};
use crate::identity::process::{DevicePart, Process};
use crate::reader::placed_event::PlacedEvent;
use std::collections::HashSet;

/// Relation of an event to the work of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventUse {
    /// An event of the host.
    Host,
    /// An event on a track of a device that is not work: a repeated annotation, a step, or
    /// something that repeats the work or was computed from it.
    Region,
    /// Work of the device.
    Work(Work),
}

/// Kind of work of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Any work: its name shows if it is a collective.
    Named,
    /// A task of an NPU whose collectives have tracks of their own. Its name shows if it is
    /// communication; it is never a whole collective.
    Task,
    /// A whole collective.
    Collective,
    /// A part of a collective.
    CollectivePart,
}

/// Devices of a trace. A device has the number of the first process that shows it.
#[derive(Debug, Default)]
pub struct Devices {
    parts: Vec<DevicePart>,
    /// Use of each thread; empty if all tracks of a device are work.
    track_uses: Vec<TrackUse>,
    /// Traces and ranks of other profilers that have a device.
    scopes: HashSet<u64>,
    /// Times of the first and the last event of each process.
    times_ns: Vec<Option<(i64, i64)>>,
}

impl Devices {
    /// Collects the devices of all processes of a trace.
    pub(super) fn new(processes: &[Process], reports: &[ProcessReport]) -> Devices {
        let threads = processes
            .iter()
            .flat_map(|process| process.threads.values());
        let parts: Vec<DevicePart> = processes
            .iter()
            .map(|process| process.part.clone())
            .collect();
        let with_device = parts.iter().filter(|part| part.device.is_some());
        let times = reports
            .iter()
            .map(|process| process.first_ns.zip(process.last_ns));
        Devices {
            track_uses: threads.map(|thread| thread.track_use).collect(),
            scopes: with_device.filter_map(|part| part.scope).collect(),
            times_ns: times.collect(),
            parts,
        }
    }

    /// Creates devices that are groups of tracks, given their numbers and the processes that
    /// recorded them.
    pub fn from_tracks(devices: impl IntoIterator<Item = (usize, usize)>) -> Devices {
        let mut parts: Vec<DevicePart> = Vec::new();
        for (device, recorder) in devices {
            let processes = parts.len().max(device.max(recorder) + 1);
            parts.resize(processes, DevicePart::default());
            parts[recorder].has_device = true;
            let part = &mut parts[device];
            (part.device, part.is_track_group) = (Some(device), true);
            part.host = Some(recorder);
        }
        Devices {
            parts,
            ..Devices::default()
        }
    }

    /// Returns the device whose tracks a process has.
    pub fn device(&self, process: usize) -> Option<usize> {
        self.parts.get(process)?.device
    }

    /// Returns true if a process has tracks with the work of a device. Sampled launches do not
    /// count if another trace has all launches of the device.
    pub fn is_worker(&self, process: usize) -> bool {
        self.parts.get(process).is_some_and(|part| part.is_worker)
    }

    /// Returns true for groups of tracks that are shown as a process: tracks of a device, or our
    /// own tracks.
    pub fn is_track_group(&self, process: usize) -> bool {
        self.parts
            .get(process)
            .is_some_and(|part| part.is_track_group)
    }

    /// Returns the label of the device whose tracks a process has, such as `NPU 3`, unless the name
    /// of the process contains it.
    pub fn label(&self, process: usize) -> Option<&str> {
        self.parts.get(process)?.label.as_deref()
    }

    /// Returns true if the device of a process is in the trace.
    pub fn has_device(&self, process: usize) -> bool {
        self.parts.get(process).is_some_and(|part| part.has_device)
    }

    /// Returns the process that launched the work of a device. For a group of the host, such as
    /// `CANN`, this is the process it belongs to. Returns the argument if the process is unknown.
    pub fn host(&self, process: usize) -> usize {
        let host = self.parts.get(process).and_then(|part| part.host);
        host.unwrap_or(process)
    }

    /// Returns a number for the trace and rank of a process: launch ids are only unique within
    /// these. Returns `None` if they have no device, and for processes recorded by us, whose slices
    /// have the launch time in their args.
    pub fn launch_scope(&self, process: usize) -> Option<u64> {
        let scope = self.parts.get(process)?.scope?;
        self.scopes.contains(&scope).then_some(scope)
    }

    /// Returns true if a span of the host with this category can be a launch: a call of a runtime,
    /// or a span without a category.
    pub fn may_launch(&self, process: usize, category: &str) -> bool {
        (category.is_empty() || is_runtime(category)) && self.launch_scope(process).is_some()
    }

    /// Returns true if the track of an event can have work of a device.
    pub fn shows_work(&self, event: &PlacedEvent<'_>, process: usize) -> bool {
        !matches!(
            self.track_use(event, process),
            TrackUse::Host | TrackUse::Regions
        )
    }

    fn track_use(&self, event: &PlacedEvent<'_>, process: usize) -> TrackUse {
        let track_use = self.track_uses.get(event.thread).copied();
        track_use.unwrap_or(match self.device(process) {
            Some(_) => TrackUse::Work,
            None => TrackUse::Host,
        })
    }

    /// Returns the relation of an event to the work of a device.
    pub fn event_use(&self, event: &PlacedEvent<'_>, process: usize, category: &str) -> EventUse {
        let work_if = |is_work: bool, work: Work| match is_work {
            true => EventUse::Work(work),
            false => EventUse::Region,
        };
        match self.track_use(event, process) {
            TrackUse::Host => EventUse::Host,
            TrackUse::Regions => EventUse::Region,
            TrackUse::Work => EventUse::Work(Work::Named),
            TrackUse::ByCategory => {
                let category_use = category_use(category);
                let works = [CategoryUse::Work, CategoryUse::WorkOnDevice];
                work_if(
                    category_use.is_some_and(|of| works.contains(&of)),
                    Work::Named,
                )
            }
            TrackUse::Tasks { shows_collectives } => match shows_collectives {
                true => work_if(is_task(event), Work::Named),
                false => work_if(is_task(event), Work::Task),
            },
            TrackUse::Collectives => EventUse::Work(Work::Collective),
            TrackUse::CollectiveParts => EventUse::Work(Work::CollectivePart),
            TrackUse::Sampled => work_if(!self.is_duplicate(event.ts_ns, process), Work::Named),
        }
    }

    /// Returns true if a kernel that this process sampled at `ns` is also in another trace, which
    /// has all kernels of the same device at that time. Such a kernel must not be counted twice.
    fn is_duplicate(&self, ns: i64, process: usize) -> bool {
        let device = self.device(process).filter(|device| *device != process);
        let time_ns = device.and_then(|device| self.times_ns.get(device).copied()?);
        time_ns.is_some_and(|(from_ns, to_ns)| (from_ns..to_ns).contains(&ns))
    }
}

/// Returns false if the task only waits for an event, records or resets one, or marks a position.
fn is_task(event: &PlacedEvent<'_>) -> bool {
    let text = |value: &[u8]| serde_json::from_slice::<String>(value).ok();
    match event.arg("Task Type").and_then(text) {
        Some(task_type) => !is_idle_task(&task_type),
        None => !is_idle_name(&event.name()),
    }
}
