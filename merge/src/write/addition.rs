//! Tracks that a program adds to a trace after it has read the events.

use crate::base::number::write_micros;
use crate::event::line::ADDED;
use crate::event::mend::json_text;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Tracks in a separate process, and hints to viewers on how to show the trace.
///
/// The tracks are written after all events, with the category `sa_findings`. They are left out when
/// the trace is read again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Addition {
    /// Name of the process with the tracks. It comes before all others.
    pub process: String,
    /// Spans in the order of their tracks; each has its own track.
    pub spans: Vec<AddedSpan>,
    /// The member `view` of `otherData`, unless it is null.
    pub view: Value,
}

/// A span on its own track.
#[derive(Clone, Debug, PartialEq)]
pub struct AddedSpan {
    /// Name of the track.
    pub track: String,
    /// Name of the span.
    pub name: String,
    /// Start, in ns from the start of the trace.
    pub from_ns: i64,
    /// Length, in ns.
    pub dur_ns: i64,
    /// Args, a JSON object.
    pub args: Value,
}

impl Addition {
    /// Returns the lines to add, without newlines. The process gets the lowest unused pid.
    pub fn lines(&self, taken: &BTreeSet<u32>) -> Vec<String> {
        if self.spans.is_empty() {
            return Vec::new();
        }
        let pid = (1..u32::MAX).find(|pid| !taken.contains(pid)).unwrap_or(0);
        let metadata = |tid: usize, name: &str, args: &Value| {
            format!(
                r#"{{"ph":"M","pid":{pid},"tid":{tid},"name":"{name}","cat":"{ADDED}","args":{}}}"#,
                json_text(args)
            )
        };
        let mut lines = vec![
            metadata(1, "process_name", &json!({ "name": self.process })),
            metadata(1, "process_sort_index", &json!({ "sort_index": -1 })),
        ];
        for (tid, span) in (1..).zip(&self.spans) {
            lines.push(metadata(tid, "thread_name", &json!({ "name": span.track })));
            lines.push(metadata(
                tid,
                "thread_sort_index",
                &json!({ "sort_index": tid }),
            ));
            lines.push(format!(
                r#"{{"ph":"X","pid":{pid},"tid":{tid},"ts":{},"dur":{},"name":{},"cat":"{ADDED}","args":{}}}"#,
                micros(span.from_ns),
                micros(span.dur_ns),
                json_text(&json!(span.name)),
                json_text(&span.args)
            ));
        }
        lines
    }
}

/// Formats a time in µs for a line of the trace.
fn micros(ns: i64) -> String {
    let mut text = Vec::new();
    write_micros(u64::try_from(ns).unwrap_or(0), &mut text);
    String::from_utf8_lossy(&text).into_owned()
}
