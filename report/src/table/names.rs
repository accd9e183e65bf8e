//! The time of each name, of each stack of names, and of the longest steps.

use crate::statistics::quantiles::Quantiles;
use serde::Serialize;

/// Times of the slices of one name. The columns have the same names as in [yappi](https://github.com/sumerc/yappi), and count wall time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NameTime {
    /// The process, by its number among [`Recorded::processes`](crate::Recorded::processes), if each is counted by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<usize>,
    /// The thread or the request, if each is counted by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The kind of row that the slices are on.
    pub row_kind: RowKind,
    /// The category; empty if the slices have none.
    pub category: String,
    /// The name.
    pub name: String,
    /// Number of slices.
    pub ncall: u64,
    /// Number of slices that are not inside another slice of the same name on their row.
    pub ncall_outermost: u64,
    /// Total duration of the outermost slices, in ns.
    pub ttot_ns: i64,
    /// Total self time of all slices, in ns: their durations without the slices inside them, whatever the names of these.
    pub tsub_ns: i64,
    /// `ttot_ns` over `ncall`.
    pub tavg_ns: f64,
    /// The same as `ttot_ns`, in CPU time of the thread. Counts only slices whose CPU time was recorded (`SA_PROFILE_CPU=1`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttot_cpu_ns: Option<i64>,
    /// The same as `tsub_ns`, in CPU time of the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tsub_cpu_ns: Option<i64>,
    /// Durations of all slices.
    pub duration: Quantiles,
    /// Maximum number of slices at once, if it was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u64>,
    /// Spans of the name that have no end; no time of theirs is counted.
    pub unfinished: u64,
    /// Slices that end after one in which they began, as no calls do: the self time of the other ones counts them up to its end.
    pub crossing: u64,
}

/// A name below the names that were open around it on its row: a node of a tree of all stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StackTime {
    /// The name around it, by its number among these; `None` of the outermost one.
    pub parent: Option<usize>,
    /// The process, by its number among [`Recorded::processes`](crate::Recorded::processes).
    pub process: usize,
    /// The kind of row that the slices are on. It is never `Async`, because async work calls nothing.
    pub row_kind: RowKind,
    /// The name.
    pub name: String,
    /// Number of slices.
    pub ncall: u64,
    /// Total duration of the slices, in ns.
    pub ttot_ns: i64,
    /// Total self time of the slices, in ns.
    pub tsub_ns: i64,
}

/// Returns the time of each stack, including all stacks inside it. A stack must come after its parent.
pub(crate) fn subtrees_ns(stacks: &[StackTime]) -> Vec<i64> {
    let mut subtrees_ns: Vec<i64> = stacks.iter().map(|stack| stack.tsub_ns).collect();
    for (number, stack) in stacks.iter().enumerate().rev() {
        if let Some(parent) = stack.parent {
            subtrees_ns[parent] = subtrees_ns[parent].saturating_add(subtrees_ns[number]);
        }
    }
    subtrees_ns
}

/// Returns the names of a stack, the outermost first.
pub(crate) fn path<'a>(stacks: &'a [StackTime], stack: &'a StackTime) -> Vec<&'a StackTime> {
    let around = |of: &&StackTime| of.parent.map(|parent| &stacks[parent]);
    let mut path: Vec<&StackTime> = std::iter::successors(Some(stack), around).collect();
    path.reverse();
    path
}

named_enum! {
    /// The kind of a row of the trace. Slices of one name are counted separately for each kind, because a launch and its kernel often have the same name.
    #[derive(Default)]
    pub RowKind {
        /// A thread. A slice there kept it busy or blocked it.
        #[default]
        Thread = "thread",
        /// A lane of async work, such as a request. A slice there may have done nothing but wait.
        Async = "async",
        /// A track, such as a stream of a device, for spans that are its work.
        Track = "track",
        /// A track, for spans that are not work: annotations that a profiler repeats there, steps, and spans computed from the work.
        Region = "region",
    }
}

/// A long step of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlowStep {
    /// The worker, by its number among the processes.
    pub process: usize,
    /// The name of its span.
    pub name: String,
    /// Start, in ns from the start of the trace.
    pub start_ns: i64,
    /// Duration, in ns.
    pub dur_ns: i64,
    /// Number of requests in the step; 0 if the trace does not say.
    pub requests: usize,
    /// The names with the most self time in the step, on its row, the longest first.
    pub inside: Vec<InStep>,
}

/// A name in a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InStep {
    /// The name.
    pub name: String,
    /// Self time of the name in the step, in ns.
    pub tsub_ns: i64,
}
