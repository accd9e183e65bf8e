//! Processes and threads of the trace.

use crate::device::category::{TrackCategories, TrackUse};
use crate::device::group::is_of_mspti;
use crate::fragment::exit::{Death, Exit};
use crate::fragment::recording::{Distinction, Recording};
use crate::summary::chunk_summary::{Activity, ChunkSummary};
use std::collections::{BTreeMap, BTreeSet};

/// Identity of a process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProcessKey {
    /// From the header: host, boot, pid namespace, pid, start time.
    Recorded(String, String, u64, u32, u64),
    /// Recording and pid, for a recording without a header or a pid that its header does not
    /// identify.
    Plain(usize, i64),
    /// Name of a group of tracks, and the process that recorded it.
    Tracks(String, Box<ProcessKey>),
}

/// Identity of a thread within its process: kernel threads first, then lanes by recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ThreadKey {
    Kernel(i64),
    Lane(usize, i64),
}

/// A thread or lane.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    pub(crate) activity: Activity,
    pub(crate) name: Option<String>,
    pub(crate) output_tid: u32,
    /// Tids of the extra lanes for its overlapping spans.
    pub(crate) lane_tids: Vec<u32>,
    pub(crate) is_main: bool,
    /// Sort index in the trace of another profiler.
    pub(crate) sort_index: Option<i64>,
    /// Id of the thread, if it is a text.
    pub(crate) id_text: Option<String>,
    /// Categories of its spans, if another profiler wrote them.
    pub(crate) categories: TrackCategories,
    /// How its events count as work of a device.
    pub(crate) track_use: TrackUse,
}

impl Thread {
    /// Returns its name, together with the id if that is a text.
    pub(crate) fn display_name(&self) -> Option<String> {
        with_text(self.name.as_deref(), self.id_text.as_deref())
    }

    /// Returns true if it has any events other than metadata.
    pub(crate) fn is_used(&self) -> bool {
        self.activity.first_ns != i64::MAX
    }
}

/// Appends an id that is a text to a name, unless the name contains it.
pub(crate) fn with_text(name: Option<&str>, text: Option<&str>) -> Option<String> {
    match (name, text) {
        (Some(name), Some(text)) if !name.contains(text) => Some(format!("{name} · {text}")),
        (name, text) => name.or(text).map(str::to_owned),
    }
}

/// A group of tracks.
#[derive(Clone, Debug)]
pub(crate) struct TrackGroup {
    pub(crate) name: String,
    pub(crate) label: String,
    pub(super) sort_index: u32,
}

/// Origin of a process that comes from another profiler's trace.
#[derive(Clone, Debug)]
pub(crate) struct TraceOrigin {
    /// Name of the trace.
    pub(crate) name: String,
    pub(crate) labels: Option<String>,
    /// Part of the trace's name that the other traces do not have.
    pub(crate) distinction: Option<Distinction>,
    /// Pid, if it is a text.
    pub(crate) pid_text: Option<String>,
    /// Number of the trace, and sort index of the process in it.
    pub(crate) sort_key: (usize, i64),
    /// True if the trace has the categories of Kineto.
    pub(crate) is_kineto: bool,
    pub(crate) is_merged: bool,
    /// Host and boot whose clock its times use.
    pub(crate) clock: Option<(String, String)>,
}

impl TraceOrigin {
    /// Returns the label of a process: its label in the trace, its pid or the text instead of it,
    /// and the trace. A number that is a hash of a text is left out.
    pub(crate) fn label(&self, pid: i64) -> String {
        let number = (pid >= 0).then(|| pid.to_string());
        let pid = self.pid_text.clone().or(number);
        let pid = pid.map(|pid| format!("pid {pid}"));
        let parts = [self.labels.clone(), pid, Some(self.name.clone())];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Relation of a process to devices. Processes are given by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DevicePart {
    /// Device whose tracks it has. A device has the number of the first process that shows it.
    pub(crate) device: Option<usize>,
    /// True if it is a group of tracks that is shown as a process: tracks of a device, or our own
    /// tracks.
    pub(crate) is_track_group: bool,
    /// Label of the device, unless the name of the process contains it.
    pub(crate) label: Option<String>,
    /// Process that launched the work of the device. For a group of the host, such as `CANN`, the
    /// process it belongs to.
    pub(crate) host: Option<usize>,
    /// Hash of the trace and rank it comes from: launch ids are only unique within these. `None`
    /// for processes recorded by us.
    pub(crate) scope: Option<u64>,
    /// True if it is the host of a device.
    pub(crate) has_device: bool,
    /// True if it has tracks with the work of a device. Sampled launches do not count if another
    /// trace has all launches of the device.
    pub(crate) is_worker: bool,
}

/// Returns the pids of processes in the trace.
pub(crate) fn output_pids(processes: &[Process]) -> BTreeSet<u32> {
    processes.iter().map(|process| process.output_pid).collect()
}

/// Clock of a process's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessClock {
    /// Number that all processes with the same clock share.
    pub(crate) number: usize,
    /// Maximum error of its times against the reference clock, in ns; `None` if unknown.
    pub(crate) uncertainty_ns: Option<u64>,
}

impl ProcessClock {
    /// Returns the label that stores it in a merged trace, for a report of that trace.
    pub(crate) fn label(&self) -> String {
        match self.uncertainty_ns {
            Some(ns) => format!("clock {} ±{ns} ns", self.number),
            None => format!("clock {} ± any time", self.number),
        }
    }

    /// Parses the clock from the labels of a merged trace. If it was merged several times, the last
    /// clock counts.
    pub(crate) fn from_labels(labels: &str) -> Option<ProcessClock> {
        let mut parts = labels.rsplit(',').map(str::trim);
        let label = parts.find_map(|part| part.strip_prefix("clock "))?;
        let (number, uncertainty) = label.split_once(" ±")?;
        let ns = uncertainty.strip_suffix(" ns");
        Some(ProcessClock {
            number: number.parse().ok()?,
            uncertainty_ns: ns.and_then(|ns| ns.parse().ok()),
        })
    }
}

/// A process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) key: ProcessKey,
    pub(crate) pid: i64,
    pub(crate) host: Option<String>,
    /// Run that it recorded, if a header names one.
    pub(crate) run: Option<String>,
    /// True if its ring was in memory, so that a kill lost everything that was not yet written.
    pub(crate) ring_in_memory: bool,
    pub(crate) main: bool,
    /// Set for a group of tracks, which is not a real process.
    pub(crate) tracks: Option<TrackGroup>,
    /// Set if another profiler recorded it.
    pub(crate) origin: Option<Box<TraceOrigin>>,
    /// `None` for a trace that is the only input and has no clock.
    pub(crate) clock: Option<ProcessClock>,
    /// Set for tracks of a device whose kernels are all in another profiler's trace.
    pub(crate) duplicate_of: Option<Box<DuplicateOf>>,
    pub(crate) part: DevicePart,
    pub(crate) name: Option<String>,
    pub(crate) fallback_name: Option<String>,
    pub(crate) activity: Activity,
    /// Time and kind of the end of its last recording.
    pub(crate) end: Option<(i64, RecordingEnd)>,
    /// Exit status as seen by the process that waited for it, if a recording contains it.
    pub(crate) exit: Option<Exit>,
    pub(crate) start_ns: i64,
    pub(crate) output_pid: u32,
    /// Boxed, because most processes have few threads and a map reserves room for several.
    pub(crate) threads: BTreeMap<ThreadKey, Box<Thread>>,
}

impl Process {
    /// Returns the threads that have any events other than metadata.
    pub(crate) fn used_threads(&self) -> impl Iterator<Item = &Thread> + Clone {
        let threads = self.threads.values().map(|thread| &**thread);
        threads.filter(|thread| thread.is_used())
    }

    /// Returns the time range of its events. Tracks of MSPTI, whose clock has no bound, only count
    /// if there are no others.
    pub(crate) fn bounded_times_ns(&self) -> (i64, i64) {
        let is_bounded = |thread: &&Thread| !thread.name.as_deref().is_some_and(is_of_mspti);
        let mut bounded = Activity::default();
        self.used_threads()
            .filter(is_bounded)
            .for_each(|thread| bounded.add(&thread.activity));
        match bounded.events {
            0 => (self.activity.first_ns, self.activity.last_ns),
            _ => (bounded.first_ns, bounded.last_ns),
        }
    }

    /// Returns its label if it was killed: `killed`, and the signal if it is known.
    pub(crate) fn killed_label(&self) -> Option<String> {
        let (_, end) = self.end.filter(|_| self.tracks.is_none())?;
        let death = Death {
            open_spans: Some(end.open_spans()),
            exit: self.exit.clone(),
            last_ns: None,
        };
        let signal = self.exit.as_ref().map(|exit| format!(" {}", exit.text()));
        let label = format!("killed{}", signal.unwrap_or_default());
        (end != RecordingEnd::Reported && death.is_kill()).then_some(label)
    }
}

impl ProcessKey {
    /// Returns the process that recorded it.
    pub(crate) fn recorder(&self) -> &ProcessKey {
        match self {
            ProcessKey::Tracks(_, recorder) => recorder,
            itself => itself,
        }
    }
}

/// Marks a group of tracks whose contents are also in another trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DuplicateOf {
    /// Trace with all kernels, and the process with their tracks in it.
    pub(crate) trace: String,
    pub(crate) hardware: ProcessKey,
    /// Sort key of that process.
    pub(crate) sort_key: (usize, i64),
}

/// End of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RecordingEnd {
    /// The process recorded its end or still runs, or this is unknown.
    #[default]
    Reported,
    /// It stopped without an end record, and no span was open.
    Silent,
    /// It stopped without an end record. It is unknown whether spans were open, because its ring is
    /// missing or unreadable.
    Unknown,
    /// It stopped without an end record, with this number of open spans.
    Killed(u64),
    /// It is a snapshot of a process that ran on.
    Running,
}

impl RecordingEnd {
    pub(crate) fn from_recording(recording: &Recording, summary: &ChunkSummary) -> RecordingEnd {
        if summary.was_running {
            return RecordingEnd::Running;
        }
        let is_settled = summary.ended && summary.open.is_some();
        let was_dead = recording.was_dead && !summary.ended;
        match summary.open {
            _ if recording.header().is_none() || !(is_settled || was_dead) => {
                RecordingEnd::Reported
            }
            None => RecordingEnd::Unknown,
            Some(0) => RecordingEnd::Silent,
            Some(open) => RecordingEnd::Killed(open),
        }
    }

    /// Returns its name in the report.
    pub(crate) fn report_name(self) -> Option<&'static str> {
        match self {
            RecordingEnd::Reported | RecordingEnd::Running => None,
            RecordingEnd::Silent => Some("silent"),
            RecordingEnd::Unknown => Some("unknown"),
            RecordingEnd::Killed(_) => Some("killed"),
        }
    }

    pub(crate) fn open_spans(self) -> u64 {
        let RecordingEnd::Killed(open) = self else {
            return 0;
        };
        open
    }
}
