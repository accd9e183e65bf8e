//! A span that has no end: its process died in it, or still ran.

use super::request_moment::ids;
use trace_merge::events::PlacedEvent;

/// Maximum number of spans without an end that are kept; the others are only counted.
pub(crate) const MOST_OPEN: usize = 100_000;

/// A span that has no end.
#[derive(Clone, Debug)]
pub(crate) struct OpenSpan {
    pub(crate) process: usize,
    pub(crate) start_ns: i64,
    pub(crate) name: String,
    /// The step that it is of, as JSON.
    pub(crate) step: Option<String>,
    pub(crate) request_ids: Vec<String>,
}

impl OpenSpan {
    /// Returns the span of an event.
    pub(crate) fn of(event: &PlacedEvent<'_>, name: &str, process: usize) -> OpenSpan {
        let step = event.arg("step").or_else(|| event.arg("batch"));
        let text = |json: &[u8]| String::from_utf8_lossy(json).trim_matches('"').to_owned();
        OpenSpan {
            process,
            start_ns: event.ts_ns,
            name: name.to_owned(),
            step: step.map(text),
            request_ids: ids(event),
        }
    }
}
