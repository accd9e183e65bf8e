//! How a process ended, as far as its recording tells. A kill leaves no word, but neither does `_exit`; what tells them apart is whether spans were open.

use crate::fragment::recording::Recording;
use crate::pass::summary::Index;

/// How a recording ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    /// Its process said so, or runs still, or nobody can tell.
    #[default]
    Told,
    /// Without a word, and with no span open.
    Silent,
    /// Without a word, and nothing tells whether spans were open: its ring is gone or cannot be read.
    Unknown,
    /// In so many open spans.
    Killed(u64),
}

impl End {
    pub(crate) fn of(recording: &Recording, index: &Index) -> End {
        let is_settled = index.ended && index.open.is_some();
        let was_dead = recording.was_dead && !index.ended;
        match index.open {
            _ if recording.header().is_none() || !(is_settled || was_dead) => End::Told,
            None => End::Unknown,
            Some(0) => End::Silent,
            Some(open) => End::Killed(open),
        }
    }

    /// What the report calls it.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            End::Told => None,
            End::Silent => Some("silent"),
            End::Unknown => Some("unknown"),
            End::Killed(_) => Some("killed"),
        }
    }

    pub(crate) fn open_spans(self) -> u64 {
        match self {
            End::Killed(open) => open,
            End::Told | End::Silent | End::Unknown => 0,
        }
    }
}
