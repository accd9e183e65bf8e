//! What a report says of the traces of other profilers.

use super::clock::seconds;
use crate::event::damage::{path_text, path_text_if_some};
use serde::Serialize;
use std::path::PathBuf;

/// A trace of another profiler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ForeignReport {
    /// Its path.
    #[serde(serialize_with = "path_text")]
    pub path: PathBuf,
    /// How its events stood in it: `object`, `list` or `lines`; `log` for one of the simpler runtime.
    pub form: &'static str,
    /// Whether it was compressed.
    pub packed: bool,
    /// Who wrote it, if that can be told.
    pub tool: Option<&'static str>,
    /// How its times were placed: `wall_clock`, `host_clock`, `offset`, or `none` if they need not be.
    pub method: &'static str,
    /// By what, in words.
    pub clock: String,
    /// What the user asked to add to its times, in ns.
    pub offset_ns: i64,
    /// Spans on the clock of a chip that lie in no span of its host, and are not in the trace.
    pub unplaced: u64,
    /// Ends of launch arrows that come before the start, because the clocks of host and device differ. Such arrows are reversed, since viewers would drop
    /// the ends.
    pub early_arrows: u64,
    /// Members of the document that are not in the trace.
    pub left_out: Vec<String>,
    /// The first piece of its process's trace, if this is a further one.
    #[serde(serialize_with = "path_text_if_some")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continues: Option<PathBuf>,
    /// Why it may be a further piece of another trace and was kept apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

impl ForeignReport {
    /// One line of words.
    pub fn words(&self) -> String {
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
