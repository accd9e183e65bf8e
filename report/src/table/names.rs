//! Times of names, of stacks of names, and of the longest steps.

use crate::statistics::quantiles::Quantiles;
use serde::Serialize;

/// Times of the slices of one name. The columns have the same names as in [yappi](https://github.com/sumerc/yappi), and
/// contain wall time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NameTime {
    /// Number of the process among [`Recorded::processes`](crate::Recorded::processes), if processes are counted
    /// separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<usize>,
    /// Name of the thread or id of the request, if these are counted separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Kind of track that the slices are on.
    pub row_kind: RowKind,
    /// Category, which is empty if the slices have none.
    pub category: String,
    /// Name of the slices.
    pub name: String,
    /// Number of slices.
    pub ncall: u64,
    /// Number of slices that are not inside another slice of the same name on their track.
    pub ncall_outermost: u64,
    /// Total duration of the outermost slices, in ns.
    pub ttot_ns: i64,
    /// Total self time of all slices, in ns: their durations without the slices inside them, of any name.
    pub tsub_ns: i64,
    /// `ttot_ns` divided by `ncall`.
    pub tavg_ns: f64,
    /// Same as `ttot_ns`, in CPU time of the thread. Only slices with a recorded CPU time count (`SA_PROFILE_CPU=1`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttot_cpu_ns: Option<i64>,
    /// Same as `tsub_ns`, in CPU time of the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tsub_cpu_ns: Option<i64>,
    /// Durations of all slices.
    pub duration: Quantiles,
    /// Maximum number of slices at once, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u64>,
    /// Number of spans of this name without an end. Their time is not counted.
    pub unfinished: u64,
    /// Number of slices that end after the slice in which they started, as no call does. Until the end of that slice,
    /// they count as its children.
    pub crossing: u64,
}

/// A name below the names that were open around it on its track: a node in a tree of all stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StackTime {
    /// Number of the node around it, or `None` for an outermost name.
    pub parent: Option<usize>,
    /// Number of the process among [`Recorded::processes`](crate::Recorded::processes).
    pub process: usize,
    /// Kind of track that the slices are on. It is never `Async`, because async spans are not part of stacks.
    pub row_kind: RowKind,
    /// Name of the slices.
    pub name: String,
    /// Number of slices.
    pub ncall: u64,
    /// Total duration of the slices, in ns.
    pub ttot_ns: i64,
    /// Total self time of the slices, in ns.
    pub tsub_ns: i64,
}

/// Returns the time of each stack in ns, including the stacks inside it, in the order of `stacks`. Each stack must come
/// after its parent.
pub(crate) fn subtrees_ns(stacks: &[StackTime]) -> Vec<i64> {
    let mut subtrees_ns: Vec<i64> = stacks.iter().map(|stack| stack.tsub_ns).collect();
    for (number, stack) in stacks.iter().enumerate().rev() {
        if let Some(parent) = stack.parent {
            subtrees_ns[parent] = subtrees_ns[parent].saturating_add(subtrees_ns[number]);
        }
    }
    subtrees_ns
}

/// Returns the nodes from the outermost name down to `stack` itself.
pub(crate) fn path<'a>(stacks: &'a [StackTime], stack: &'a StackTime) -> Vec<&'a StackTime> {
    let around = |node: &&StackTime| node.parent.map(|parent| &stacks[parent]);
    let mut path: Vec<&StackTime> = std::iter::successors(Some(stack), around).collect();
    path.reverse();
    path
}

named_enum! {
    /// Kind of a track. Slices of one name are counted separately for each kind, because a launch and its kernel often
    /// have the same name.
    #[derive(Default)]
    pub RowKind {
        /// A thread. Its slices kept it busy or blocked it.
        #[default]
        Thread = "thread",
        /// A lane of async work, such as a request. Its slices may only have waited.
        Async = "async",
        /// A device track, such as a stream, for spans that are work of the device.
        Track = "track",
        /// A device track, for spans that are not work: annotations that a profiler repeats there, steps, and spans
        /// computed from the work.
        Region = "region",
    }
}

/// A long step of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlowStep {
    /// Number of the worker among the processes.
    pub process: usize,
    /// Name of the step's span.
    pub name: String,
    /// Start, in ns from the start of the trace.
    pub start_ns: i64,
    /// Duration, in ns.
    pub dur_ns: i64,
    /// Number of requests in the step, or 0 if the trace does not contain it.
    pub requests: usize,
    /// Names with the most self time in the step, on its track, longest first.
    pub inside: Vec<InStep>,
}

/// A name inside a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InStep {
    /// Name of the slices.
    pub name: String,
    /// Self time of the name in the step, in ns.
    pub tsub_ns: i64,
}
