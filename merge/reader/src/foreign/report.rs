//! Report about the traces of other profilers.

use super::clock::seconds;
use crate::event::damage::{path_text, path_text_if_some};
use serde::Serialize;
use std::path::PathBuf;

/// A trace of another profiler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ForeignReport {
    /// Path of the file.
    #[serde(serialize_with = "path_text")]
    pub path: PathBuf,
    /// Form of the document: `object`, `list` or `lines`; `log` for one of the simpler runtime.
    pub form: &'static str,
    /// True if it was compressed.
    pub packed: bool,
    /// Profiler that wrote it, if it is known.
    pub tool: Option<&'static str>,
    /// How its times were placed: `wall_clock`, `host_clock` or `offset`; `none` if this is not needed.
    pub method: &'static str,
    /// Description of the clock that was used.
    pub clock: String,
    /// Time in ns that the user added.
    pub offset_ns: i64,
    /// Number of spans on the clock of a chip that could not be placed within a span of the host. They are not in the trace.
    pub unplaced: u64,
    /// Number of ends of launch arrows that come before the start, because the clocks of host and device differ. Such arrows are reversed, because
    /// viewers would drop the ends.
    pub early_arrows: u64,
    /// Members of the document that the trace does not contain.
    pub left_out: Vec<String>,
    /// Path of the first piece of its process's trace, if this is a later one.
    #[serde(serialize_with = "path_text_if_some")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continues: Option<PathBuf>,
    /// Reason why it may be a later piece of another trace, although it was kept separate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

impl ForeignReport {
    /// Returns the report as one line of text, such as `a.json: trace of kineto (object), placed by its baseTimeNanoseconds`.
    pub fn text(&self) -> String {
        let tool = self.tool.unwrap_or("another profiler");
        let packed = if self.packed { ", compressed" } else { "" };
        let (path, form, clock) = (self.path.display(), self.form, &self.clock);
        let mut words = format!("{path}: trace of {tool} ({form}{packed}), {clock}");
        if self.offset_ns != 0 {
            words += &format!(", moved by {}", seconds(self.offset_ns));
        }
        if let Some(first) = &self.continues {
            words += &format!(", continues {}", first.display());
        }
        if let Some(doubt) = &self.doubt {
            words += &format!("; {doubt}");
        }
        let (unplaced, reversed) = (self.unplaced, self.early_arrows);
        if unplaced > 0 {
            words += &format!("; spans of the chip that could not be placed: {unplaced}");
        }
        if reversed > 0 {
            words += &format!("; ends of launch arrows before their start, reversed: {reversed}");
        }
        if !self.left_out.is_empty() {
            words += &format!("; left out: {}", self.left_out.join(", "));
        }
        words
    }
}
