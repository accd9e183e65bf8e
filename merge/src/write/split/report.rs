//! The report of a merge about the files of its trace.

use crate::event::damage::{path_text, path_text_if_some};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Files of a trace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OutputReport {
    /// Path of the trace, or of its first part; absent for the standard output.
    #[serde(rename = "output", serialize_with = "path_text_if_some")]
    pub path: Option<PathBuf>,
    /// Length in bytes, of all parts together.
    #[serde(rename = "output_bytes")]
    pub bytes: u64,
    /// Parts, if the trace was split.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartReport>,
    /// Maximum bytes of text that each part should have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_bytes: Option<u64>,
    /// Names of files next to the parts that are named like parts and do not belong to this trace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_parts: Vec<String>,
}

/// One part of a trace that was split.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PartReport {
    /// Its file.
    #[serde(serialize_with = "path_text")]
    pub path: PathBuf,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Length of its text in bytes; more than the file's if that is compressed.
    pub text_bytes: u64,
    /// Events in it, metadata included but for what the merge added. One that crosses its edges is in other parts, too.
    pub events: u64,
    /// Where it begins, in ns from the base.
    pub from_ns: i64,
    /// Where it ends; absent for the last part.
    pub to_ns: Option<i64>,
}

impl PartReport {
    /// It in words; `limit` is the length of text that was asked for.
    pub(crate) fn words(&self, limit: u64) -> String {
        let seconds = |ns: i64| Duration::from_nanos(ns.unsigned_abs()).as_secs_f64();
        let until = match self.to_ns {
            Some(to_ns) => format!("to {:.6}s", seconds(to_ns)),
            None => "to the end".to_owned(),
        };
        let too_large = match self.text_bytes > limit {
            true => ", more than asked for: it cannot be cut any further",
            false => "",
        };
        format!(
            "{}: {:.6}s {until}, {} events, {:.1} MB of text{too_large}",
            file_name(&self.path),
            seconds(self.from_ns),
            self.events,
            self.text_bytes as f64 / 1e6
        )
    }
}

/// The last part of a path, as text.
pub(crate) fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
