//! Processes and threads of the trace.

use crate::device::category::{RowCategories, RowUse};
use crate::device::group::is_of_mspti;
use crate::fragment::exit::{Death, Exit};
use crate::fragment::recording::{Distinction, Recording};
use crate::summary::chunk_summary::{Activity, ChunkSummary};
use std::collections::{BTreeMap, BTreeSet};

/// What makes a process itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProcessKey {
    /// By the header: host, boot, pid namespace, pid, start time.
    Recorded(String, String, u64, u32, u64),
    /// A pid in a recording without a header, or one that its header does not name.
    Plain(usize, i64),
    /// A group of tracks that a process recorded, by its name.
    Tracks(String, Box<ProcessKey>),
}

/// What makes a thread itself within its process: kernel threads first, then lanes by recording.
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
    /// Ids of the rows beside it.
    pub(crate) overflow: Vec<u32>,
    pub(crate) is_main: bool,
    /// Where its trace wants it among the others, if another profiler wrote that.
    pub(crate) place: Option<i64>,
    /// The id, if it is a text.
    pub(crate) text: Option<String>,
    /// The categories of its spans, if another profiler wrote them.
    pub(crate) categories: RowCategories,
    /// The part of its events in the work of a device.
    pub(crate) row_use: RowUse,
}

impl Thread {
    /// Returns its name, with the id if that is a text.
    pub(crate) fn shown_name(&self) -> Option<String> {
        with_text(self.name.as_deref(), self.text.as_deref())
    }

    /// Whether it has anything but metadata.
    pub(crate) fn is_used(&self) -> bool {
        self.activity.first_ns != i64::MAX
    }
}

/// Adds an id that is a text to a name, unless the name contains it.
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

/// What another profiler's trace says of a process in it.
#[derive(Clone, Debug)]
pub(crate) struct TraceOrigin {
    /// The trace.
    pub(crate) name: String,
    pub(crate) labels: Option<String>,
    /// The part of its name that the other traces do not have.
    pub(crate) distinction: Option<Distinction>,
    /// The pid, if it is a text.
    pub(crate) pid_text: Option<String>,
    /// Which of the traces it is, and where that wants the process among its others.
    pub(crate) place: (usize, i64),
    /// Set if the trace has the categories of Kineto, and if a merge wrote it.
    pub(crate) is_kineto: bool,
    pub(crate) is_merged: bool,
    /// The host and the boot whose clock its times are of.
    pub(crate) clock: Option<(String, String)>,
}

impl TraceOrigin {
    /// Returns the label of a process: its label in the trace, its pid or the text in its place, and the trace. A hash number for a text is left out.
    pub(crate) fn label(&self, pid: i64) -> String {
        let number = (pid >= 0).then(|| pid.to_string());
        let pid = self.pid_text.clone().or(number);
        let pid = pid.map(|pid| format!("pid {pid}"));
        let parts = [self.labels.clone(), pid, Some(self.name.clone())];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// The relation of a process to devices. Processes are given by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DevicePart {
    /// The device whose rows it has. The number of a device is the number of the first process with rows of it.
    pub(crate) device: Option<usize>,
    /// Set for groups of rows that are shown as a process: rows of a device, or tracks.
    pub(crate) is_rows: bool,
    /// The label of the device, unless the name of the process contains it.
    pub(crate) label: Option<String>,
    /// The process that launched the work of the device. For a group of the host, such as `CANN`, the process it belongs to.
    pub(crate) host: Option<usize>,
    /// Hash of the trace and rank it comes from: ids of launches are unique within those. `None` for processes recorded here.
    pub(crate) scope: Option<u64>,
    /// Set if it is the host of a device.
    pub(crate) has_device: bool,
    /// Set if it has rows with the work of a device. Sampled launches of a device that another trace has whole do not count.
    pub(crate) is_worker: bool,
}

/// Returns the pids of processes in the trace.
pub(crate) fn output_pids(processes: &[Process]) -> BTreeSet<u32> {
    processes.iter().map(|process| process.output_pid).collect()
}

/// The clock of a process's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessClock {
    /// The same for all processes of one clock.
    pub(crate) number: usize,
    /// Maximum error of its times against the reference clock, in ns; `None` if unknown.
    pub(crate) uncertainty_ns: Option<u64>,
}

impl ProcessClock {
    /// Returns the label that keeps it in a merged trace, for a report of that trace.
    pub(crate) fn label(&self) -> String {
        match self.uncertainty_ns {
            Some(ns) => format!("clock {} ±{ns} ns", self.number),
            None => format!("clock {} ± any time", self.number),
        }
    }

    /// Reads the clock from the labels of a merged trace. If it was merged several times, the last clock counts.
    pub(crate) fn of_labels(labels: &str) -> Option<ProcessClock> {
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
    /// The run that it recorded, where a header names one.
    pub(crate) run: Option<String>,
    /// Its ring lay in memory: a kill lost what was not yet written.
    pub(crate) ring_in_memory: bool,
    pub(crate) main: bool,
    /// Set for a group of tracks: no process itself.
    pub(crate) tracks: Option<TrackGroup>,
    /// Set if another profiler recorded it.
    pub(crate) origin: Option<Box<TraceOrigin>>,
    /// `None` for a trace that is the only input and has no clock.
    pub(crate) clock: Option<ProcessClock>,
    /// Set for tracks of a device whose kernels another profiler's trace has.
    pub(crate) aside: Option<Box<DuplicateOf>>,
    pub(crate) part: DevicePart,
    pub(crate) name: Option<String>,
    pub(crate) fallback_name: Option<String>,
    pub(crate) activity: Activity,
    /// How its last recording ended, and when.
    pub(crate) end: Option<(i64, RecordingEnd)>,
    /// The same as whoever waited for it saw, where a recording says so.
    pub(crate) exit: Option<Exit>,
    pub(crate) start_ns: i64,
    pub(crate) output_pid: u32,
    /// In boxes: most processes have few, and a map begins with room for some.
    pub(crate) threads: BTreeMap<ThreadKey, Box<Thread>>,
}

impl Process {
    /// Returns the threads that have anything but metadata.
    pub(crate) fn used_threads(&self) -> impl Iterator<Item = &Thread> + Clone {
        let threads = self.threads.values().map(|thread| &**thread);
        threads.filter(|thread| thread.is_used())
    }

    /// Returns the times of its events. Rows of MSPTI, whose clock has no bound, count only if there are no others.
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

    /// Text of its label if it was killed: `killed`, and by which signal if that is known.
    pub(crate) fn killed_label(&self) -> Option<String> {
        let (_, end) = self.end.filter(|_| self.tracks.is_none())?;
        let death = Death {
            open_spans: Some(end.open_spans()),
            exit: self.exit.clone(),
            last_ns: None,
        };
        let signal = self.exit.as_ref().map(|exit| format!(" {}", exit.words()));
        let label = format!("killed{}", signal.unwrap_or_default());
        (end != RecordingEnd::Told && death.is_kill()).then_some(label)
    }
}

impl ProcessKey {
    /// The process that recorded it.
    pub(crate) fn recorder(&self) -> &ProcessKey {
        match self {
            ProcessKey::Tracks(_, recorder) => recorder,
            itself => itself,
        }
    }
}

/// That a group of rows is there for nothing that another trace does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DuplicateOf {
    /// The trace that has the kernels, and the process of it with their rows.
    pub(crate) trace: String,
    pub(crate) hardware: ProcessKey,
    /// Where its rows stand.
    pub(crate) place: (usize, i64),
}

/// How a recording ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RecordingEnd {
    /// Its process said that it ended, or still runs, or this is unknown.
    #[default]
    Told,
    /// Without a word, and with no span open.
    Silent,
    /// Without a word. It is not known whether spans were open, because its ring is gone or cannot be read.
    Unknown,
    /// Without a word, in this number of open spans.
    Killed(u64),
    /// With a snapshot, while the process ran on.
    Running,
}

impl RecordingEnd {
    pub(crate) fn of(recording: &Recording, summary: &ChunkSummary) -> RecordingEnd {
        if summary.was_running {
            return RecordingEnd::Running;
        }
        let is_settled = summary.ended && summary.open.is_some();
        let was_dead = recording.was_dead && !summary.ended;
        match summary.open {
            _ if recording.header().is_none() || !(is_settled || was_dead) => RecordingEnd::Told,
            None => RecordingEnd::Unknown,
            Some(0) => RecordingEnd::Silent,
            Some(open) => RecordingEnd::Killed(open),
        }
    }

    /// Returns its name in the report.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            RecordingEnd::Told | RecordingEnd::Running => None,
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
