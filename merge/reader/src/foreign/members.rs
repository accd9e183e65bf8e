//! Members of a document other than its events: its profiler, and the origin of its times.

use crate::event::mend::from_slice;
use serde_json::Value;

/// The name of the tool in traces that a merge wrote.
pub(super) const MERGED: &str = "trace-merge";
/// Maximum number of member names that are kept.
const MOST_NAMES: usize = 64;
/// Maximum length of a member that is parsed.
const MOST_BYTES: usize = 1 << 16;

/// Information from the members of a document.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DocumentMembers {
    /// The profiler, if it is known.
    pub(super) tool: Option<&'static str>,
    /// Wall time in ns that is the origin of the times.
    pub(super) base_ns: Option<i64>,
    /// The rank of its process in a distributed program.
    pub(super) rank: Option<u64>,
    /// Names of the members that a merged trace does not contain.
    pub(super) left_out: Vec<String>,
}

impl DocumentMembers {
    /// Creates the information about a trace that is not a JSON document and has no members. `tool` is the profiler that wrote it.
    pub(super) fn new(tool: &'static str) -> DocumentMembers {
        DocumentMembers {
            tool: Some(tool),
            ..DocumentMembers::default()
        }
    }

    /// Reads a member of the document if its meaning is known; otherwise keeps its name in `left_out`. `key` has no quotes, and `value` is JSON
    /// text.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        let is_short = value.len() <= MOST_BYTES;
        let value = || {
            let value = is_short.then_some(value)?;
            from_slice::<Value>(value)
        };
        let field = |name: &str| value().and_then(|value| value.get(name).cloned());
        match key {
            b"baseTimeNanoseconds" => {
                self.base_ns = value().and_then(|base_ns| base_ns.as_i64());
                self.tool.get_or_insert("kineto");
                return;
            }
            // This is how viewers should print times. The merged trace does not set it.
            b"displayTimeUnit" => return,
            b"schemaVersion" => return,
            b"viztracer_metadata" => {
                self.base_ns = field("baseTimeNanoseconds").and_then(|base_ns| base_ns.as_i64());
                self.tool = Some("viztracer");
            }
            b"distributedInfo" => {
                self.rank = field("rank").and_then(|rank| rank.as_u64());
            }
            b"otherData" if field("tool").is_some_and(|tool| tool == MERGED) => {
                self.tool = Some(MERGED);
            }
            _ => {}
        }
        if self.left_out.len() < MOST_NAMES {
            self.left_out
                .push(String::from_utf8_lossy(key).into_owned());
        }
    }
}
