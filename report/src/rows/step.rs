//! Steps.

use super::column::{FigureColumn, TableRow, count, int, process, text, us};
use std::sync::Arc;

/// The kind of process that recorded a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepRole {
    /// A worker: the span of the step. A step inside another one of its process is not counted again.
    Worker,
    /// An engine: the counter of the tokens that it put into a step. The step lasts from the counter's previous value.
    Engine,
}

/// A step of a worker or an engine.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRow {
    /// The process, by its number.
    pub process: usize,
    /// The kind of the process.
    pub role: StepRole,
    /// The name of its span. An engine's step has none.
    pub name: Option<Arc<str>>,
    /// The start, in ns from the start of the trace.
    pub start_ns: i64,
    /// The duration; `None` if an engine's step follows a pause.
    pub dur_ns: Option<i64>,
    /// The number of its requests, if it names them.
    pub requests: Option<u64>,
    /// Tokens of prompts in it, if the engine counts them.
    pub prefill_tokens: Option<u64>,
    /// Tokens of answers in it, if the engine counts them.
    pub decode_tokens: Option<u64>,
}

impl StepRole {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            StepRole::Worker => "worker",
            StepRole::Engine => "engine",
        }
    }
}

impl TableRow for StepRow {
    const TABLE: &'static str = "step";
    const COLUMNS: &'static [FigureColumn<StepRow>] = &[
        process("process", "upid", |step| Some(step.process)),
        text("role", |step| Some(step.role.name())),
        text("name", |step| step.name.as_deref()),
        int("start_ns", |step| Some(step.start_ns)),
        us("dur_us", |step| step.dur_ns),
        count("requests", |step| step.requests),
        count("prefill_tokens", |step| step.prefill_tokens),
        count("decode_tokens", |step| step.decode_tokens),
    ];

    fn process(&self) -> Option<usize> {
        Some(self.process)
    }
}
