//! The time of each name, of each stack of names, and of the longest steps.

use crate::quantiles::Quantiles;
use serde::Serialize;

/// What the slices of one name took. The columns are those of [yappi](https://github.com/sumerc/yappi), on the wall clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NameTime {
    /// The process, by its number among [`Recorded::processes`](crate::Recorded::processes), if each is counted by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<usize>,
    /// The thread or the request, if each is counted by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What the slices lie on.
    pub row_kind: RowKind,
    /// The category, empty if there is none.
    pub category: String,
    /// The name.
    pub name: String,
    /// How many slices there are.
    pub ncall: u64,
    /// How many of them lie in no other one of the same name on their row.
    pub ncall_outermost: u64,
    /// What those took, in ns.
    pub ttot_ns: i64,
    /// What all of them took without the slices in them, which may have any name.
    pub tsub_ns: i64,
    /// `ttot_ns` over `ncall`.
    pub tavg_ns: f64,
    /// The same two on the clock of the thread's CPU time, of the slices where that was recorded (`SA_PROFILE_CPU=1`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttot_cpu_ns: Option<i64>,
    /// See there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tsub_cpu_ns: Option<i64>,
    /// Durations of all of them.
    pub duration: Quantiles,
    /// How many slices there were at once, if that is asked for.
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
    /// What the slices lie on: never async work, which calls nothing.
    pub row_kind: RowKind,
    /// The name.
    pub name: String,
    /// How many slices there are.
    pub ncall: u64,
    /// What they took together, in ns.
    pub ttot_ns: i64,
    /// What they took without those in them.
    pub tsub_ns: i64,
}

/// The self times of each stack and of all in it. Each stands behind the one around it.
pub(crate) fn subtrees_ns(stacks: &[StackTime]) -> Vec<i64> {
    let mut subtrees_ns: Vec<i64> = stacks.iter().map(|stack| stack.tsub_ns).collect();
    for (number, stack) in stacks.iter().enumerate().rev() {
        if let Some(parent) = stack.parent {
            subtrees_ns[parent] = subtrees_ns[parent].saturating_add(subtrees_ns[number]);
        }
    }
    subtrees_ns
}

/// A stack's names, the outermost first.
pub(crate) fn path<'a>(stacks: &'a [StackTime], stack: &'a StackTime) -> Vec<&'a StackTime> {
    let around = |of: &&StackTime| of.parent.map(|parent| &stacks[parent]);
    let mut path: Vec<&StackTime> = std::iter::successors(Some(stack), around).collect();
    path.reverse();
    path
}

named_enum! {
    /// What a row of the trace stands for. Slices of one name are counted apart on each kind: a launch and its kernel are often called alike.
    #[derive(Default)]
    pub RowKind {
        /// A thread: what stands there kept it busy, or blocked it.
        #[default]
        Thread = "thread",
        /// A lane of async work, such as a request: what stands there may only have waited.
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
    /// When it began, in ns from the begin of the trace.
    pub start_ns: i64,
    /// How long it took.
    pub dur_ns: i64,
    /// How many requests it was of; 0 if the trace does not tell.
    pub requests: usize,
    /// What took most of it on its row, without what lies in that: the most first.
    pub inside: Vec<InStep>,
}

/// A name in a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InStep {
    /// The name.
    pub name: String,
    /// Its time in the step, without what lies in it.
    pub tsub_ns: i64,
}
