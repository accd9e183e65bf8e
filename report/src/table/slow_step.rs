//! The longest steps, and what was in them.

use serde::Serialize;

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
