//! What stands in a document beside its events: whose it is, and what its times count from.

use crate::event::mend::from_slice;
use serde_json::Value;

/// The name of the tool in traces that a merge wrote.
pub(super) const MERGED: &str = "trace-merge";
/// Names of members that are kept.
const MOST_NAMES: usize = 64;
/// Longest member that is looked at.
const MOST_BYTES: usize = 1 << 16;

/// What the members of a document say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DocumentMembers {
    /// The profiler, if it can be told.
    pub(super) tool: Option<&'static str>,
    /// Wall time in ns that times count from.
    pub(super) base_ns: Option<i64>,
    /// The rank of its process in a distributed program.
    pub(super) rank: Option<u64>,
    /// The names of those that are in no trace that is merged from it.
    pub(super) left_out: Vec<String>,
}

impl DocumentMembers {
    /// Those of something that has none.
    pub(super) fn of(tool: &'static str) -> DocumentMembers {
        DocumentMembers {
            tool: Some(tool),
            ..DocumentMembers::default()
        }
    }

    /// Takes one member; `key` is its name between the quotes.
    pub(super) fn take(&mut self, key: &[u8], value: &[u8]) {
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
            // How viewers shall print times; the merged trace leaves it to them.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_is_found_in_either_place() {
        let mut members = DocumentMembers::default();
        members.take(b"schemaVersion", b"1");
        members.take(b"deviceProperties", b"[]");
        members.take(b"baseTimeNanoseconds", b"1790857026000000000");
        assert_eq!(members.base_ns, Some(1_790_857_026_000_000_000));
        assert_eq!(
            (members.tool, members.left_out),
            (Some("kineto"), vec!["deviceProperties".to_owned()])
        );
        let mut members = DocumentMembers::default();
        let info = br#"{"backend":"nccl","rank":3,"world_size":8}"#;
        members.take(b"distributedInfo", info);
        assert_eq!(members.rank, Some(3));
        let mut members = DocumentMembers::default();
        let metadata = br#"{"version":"1.1.1","overflow":false,"baseTimeNanoseconds":17953}"#;
        members.take(b"viztracer_metadata", metadata);
        assert_eq!(
            (members.tool, members.base_ns),
            (Some("viztracer"), Some(17953))
        );
        let mut members = DocumentMembers::default();
        members.take(b"viztracer_metadata", br#"{"version":"0.15"}"#);
        assert_eq!((members.tool, members.base_ns), (Some("viztracer"), None));
    }
}
