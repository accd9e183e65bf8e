//! How a process ended, as far as its recording tells. A kill leaves no word, but neither does `_exit`; what tells them apart is whether spans were open.

use crate::fragment::recording::Recording;
use crate::summary::chunk_summary::ChunkSummary;

/// How a recording ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RecordingEnd {
    /// Its process said so, or runs still, or nobody can tell.
    #[default]
    Told,
    /// Without a word, and with no span open.
    Silent,
    /// Without a word. It is not known whether spans were open, because its ring is gone or cannot be read.
    Unknown,
    /// In so many open spans.
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

    /// What the report calls it.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            RecordingEnd::Told | RecordingEnd::Running => None,
            RecordingEnd::Silent => Some("silent"),
            RecordingEnd::Unknown => Some("unknown"),
            RecordingEnd::Killed(_) => Some("killed"),
        }
    }

    pub(crate) fn open_spans(self) -> u64 {
        match self {
            RecordingEnd::Killed(open) => open,
            RecordingEnd::Told
            | RecordingEnd::Silent
            | RecordingEnd::Unknown
            | RecordingEnd::Running => 0,
        }
    }
}
