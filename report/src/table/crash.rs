//! A crash: which process died first, and in what.

use serde::Serialize;
use trace_merge::Exit;

/// Which process of a crashed run died first, in what, and which were killed after it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Crash {
    /// The process that died first, by its number among [`Recorded::processes`](crate::Recorded::processes).
    pub process: usize,
    /// How it ended, where the program that waited for it saw.
    pub exit: Option<Exit>,
    /// Time of its last event, in ns from the begin of the trace.
    pub last_ns: Option<i64>,
    /// The step that it was in, as the arg `step` or `batch` of its innermost open span that has one.
    pub step: Option<String>,
    /// The requests of its open spans, the first hundred.
    pub request_ids: Vec<String>,
    /// Number of requests of its open spans.
    pub requests: u64,
    /// Its open spans in the order in which they began, at most 32.
    pub spans: Vec<CrashedSpan>,
    /// The processes that were killed after it.
    pub followed_by: Vec<FollowedBy>,
    /// Processes that may have died before it: shortly before, they stopped recording in no open span, and did not close their recordings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub maybe_before: Vec<MaybeBefore>,
}

/// A span in which a process died.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CrashedSpan {
    /// Its name.
    pub name: String,
    /// When it began, in ns from the begin of the trace.
    pub start_ns: i64,
}

/// A process that may have died before the first one that was killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MaybeBefore {
    /// Its number among the processes.
    pub process: usize,
    /// Time from its last event to the last one of the process that was killed first, in ns.
    pub before_ns: i64,
}

/// A process that was killed after the first one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FollowedBy {
    /// Its number among the processes.
    pub process: usize,
    /// How it ended, where the program that waited for it saw.
    pub exit: Option<Exit>,
    /// Time from the last event of the first one to its own, in ns. It is `None` if its own last event came earlier.
    pub after_ns: Option<i64>,
}
