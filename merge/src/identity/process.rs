//! Processes and threads of the trace.

use crate::fragment::exit::{Death, Exit};
use crate::pass::end::RecordingEnd;
use crate::pass::summary::Activity;
use std::collections::BTreeMap;

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
    /// The name that stands in its id's place, if it has no other.
    pub(crate) text: Option<String>,
}

impl Thread {
    /// Whether it has anything but metadata.
    pub(crate) fn is_used(&self) -> bool {
        self.activity.first_ns != i64::MAX
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
    /// Which of the traces it is, and where that wants the process among its others.
    pub(crate) place: (usize, i64),
}

impl TraceOrigin {
    /// What stands behind the name of a process: a pid that stands for a text says nothing.
    pub(crate) fn label(&self, pid: i64) -> String {
        let pid = (pid >= 0).then(|| format!("pid {pid}"));
        let parts = [self.labels.clone(), pid, Some(self.name.clone())];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
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
    pub(crate) origin: Option<TraceOrigin>,
    /// Set for tracks of a device whose kernels another profiler's trace has.
    pub(crate) aside: Option<DuplicateOf>,
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
    /// The trace that has the kernels.
    pub(crate) trace: String,
    /// Where its rows stand.
    pub(crate) place: (usize, i64),
}
