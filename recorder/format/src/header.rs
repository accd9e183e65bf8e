//! The header: the first record of every segment (FORMAT.md §2.1).

use crate::control::Level;
use crate::record::Record;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The format version that this crate writes.
pub const VERSION: u32 = 1;
/// Beginning of the first line of every segment, up to the pid.
pub const FRAGMENT_START: &[u8] = br#"{"ph":"M","pid":"#;

/// The args of the `sa_fragment` record: which process and recorder wrote the fragment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FragmentHeader {
    /// Format version.
    pub version: u32,
    /// 16 hex digits that distinguish recorders.
    pub nonce: String,
    /// Segment number, from 0.
    pub segment: u32,
    /// Run id.
    pub run: String,
    /// True if the process is the main process of the run.
    pub main: bool,
    /// Host name.
    pub host: String,
    /// Kernel boot id.
    pub boot_id: String,
    /// Inode of the pid namespace.
    pub pid_ns: u64,
    /// Inode of the time namespace; 0 if the kernel does not have time namespaces.
    pub time_ns: u64,
    /// Offset of the time namespace's monotonic clock in ns.
    pub monotonic_offset_ns: i64,
    /// Process id inside its namespace.
    pub pid: u32,
    /// Start time in clock ticks since boot.
    pub start_time: u64,
    /// File name of the executable.
    pub exe: String,
    /// File name of the script that an interpreter runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Name of the process that forked this one, or of its nearest ancestor that had a name; empty
    /// if none had one. Absent unless a recording process forked this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<String>,
    /// Storage of the ring.
    pub ring: RingKind,
    /// The writer's page size in bytes.
    pub page_bytes: u32,
    /// Levels that were on when the fragment began, before any control file. Absent in fragments of
    /// recorders that could not be switched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<Vec<Level>>,
    /// Earliest start, in ns of `CLOCK_MONOTONIC`, of a span that was open or of a line that was
    /// recorded but not yet written when the segment began. Absent in segment 0, and if the
    /// recorder does not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_ns: Option<u64>,
    /// Longest delay so far, in ns, between the start of an event and its recording, for events
    /// that are recorded only after they began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_ns: Option<u64>,
}

impl Record for FragmentHeader {
    const NAME: &'static str = "sa_fragment";
}

impl FragmentHeader {
    /// Returns the file name of the process's script, or of its executable if it runs no script.
    pub fn program(&self) -> &str {
        self.script.as_deref().unwrap_or(&self.exe)
    }

    /// Returns the name to show for a process that has not given itself one: `worker-0 fork 4711`
    /// if another process forked it, otherwise its program.
    pub fn default_name(&self) -> Cow<'_, str> {
        match self.forked_from.as_deref() {
            None => self.program().into(),
            Some("") => format!("{} fork {}", self.program(), self.pid).into(),
            Some(parent) => format!("{parent} fork {}", self.pid).into(),
        }
    }

    /// Returns true if the process was forked from one that had a name, so that its default name
    /// contains it.
    pub fn is_named_after_parent(&self) -> bool {
        let parent = self.forked_from.as_ref();
        parent.is_some_and(|parent| !parent.is_empty())
    }

    /// Copies the parent's name from the header of another fragment of the same process, if only
    /// that fragment's recorder knew the name.
    pub fn complete_with(&mut self, other: &FragmentHeader) {
        if !self.is_named_after_parent() && other.is_named_after_parent() {
            self.forked_from.clone_from(&other.forked_from);
        }
    }
}

/// The storage of a recorder's ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RingKind {
    /// A file next to the fragment, which survives a kill.
    #[default]
    File,
    /// Anonymous memory. Unflushed lines are lost when the process dies.
    Heap,
}
