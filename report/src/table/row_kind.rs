//! What a row of the trace stands for.

use serde::Serialize;

/// What a row of the trace stands for. Slices of one name are counted apart on each kind: a launch and its kernel are often called alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RowKind {
    /// A thread: what stands there kept it busy, or blocked it.
    #[default]
    Thread,
    /// A lane of async work, such as a request: what stands there may only have waited.
    Async,
    /// A track, such as a stream of a device, for spans that are its work.
    Track,
    /// A track, for spans that are not work: annotations that a profiler repeats there, steps, and spans computed from the work.
    Region,
}

impl RowKind {
    /// Returns its name, as in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            RowKind::Thread => "thread",
            RowKind::Async => "async",
            RowKind::Track => "track",
            RowKind::Region => "region",
        }
    }
}
