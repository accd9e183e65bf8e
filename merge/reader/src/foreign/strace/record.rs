//! Parses a record of the log: `key=value` words with percent-encoded names and values.

use std::collections::HashMap;

/// A record of the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LogRecord {
    /// Wall time of a process at the zero of its monotonic clock.
    Anchor {
        pid: i64,
        wall_ns: i64,
    },
    Span(LogSpan),
}

/// A span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogSpan {
    pub(super) pid: i64,
    pub(super) tid: i64,
    /// Number of the launch within its process.
    pub(super) inv: i64,
    /// Hash of the launched program.
    pub(super) hid: String,
    pub(super) depth: i64,
    pub(super) name: String,
    /// Start in ns, on the host's monotonic clock or since the beginning of the launch on the chip's clock.
    pub(super) ts_ns: i64,
    pub(super) dur_ns: i64,
    pub(super) is_on_chip: bool,
    pub(super) attributes: Vec<(String, String)>,
}

/// Maximum time, the same as for events.
const LIMIT_NS: i64 = i64::MAX / 4;
/// Keys that are not attributes.
const KNOWN: [&str; 10] = [
    "v", "pid", "tid", "inv", "hid", "depth", "name", "ts", "dur", "clk",
];

impl LogRecord {
    /// Parses the text of a record after its marker, which is `[CLOCK_ANCHOR]` if `is_anchor`. Returns `None` if the record is malformed.
    pub(super) fn parse(is_anchor: bool, text: &[u8]) -> Option<LogRecord> {
        let text = std::str::from_utf8(text).ok()?;
        let words: Vec<(&str, &str)> = text
            .split_ascii_whitespace()
            .map(|word| word.split_once('='))
            .collect::<Option<_>>()?;
        let values: HashMap<&str, &str> = words.iter().copied().collect();
        let time = |key: &str| {
            let ns: i64 = values.get(key)?.parse().ok()?;
            (0..=LIMIT_NS).contains(&ns).then_some(ns)
        };
        let number = |key: &str| values.get(key)?.parse::<i64>().ok();
        if values.get("v") != Some(&"1") {
            return None;
        }
        if is_anchor {
            return Some(LogRecord::Anchor {
                pid: number("pid")?,
                wall_ns: time("wall_ns")? - time("mono_ns")?,
            });
        }
        let attributes = words.iter().filter(|(key, _)| !KNOWN.contains(key));
        let (pid, tid) = (number("pid")?, number("tid")?);
        Some(LogRecord::Span(LogSpan {
            pid,
            tid,
            inv: number("inv")?,
            hid: percent_decoded(values.get("hid")?),
            depth: number("depth")?,
            name: percent_decoded(values.get("name")?),
            ts_ns: time("ts")?,
            dur_ns: time("dur")?,
            is_on_chip: values.get("clk") == Some(&"dev"),
            attributes: attributes
                .map(|(key, value)| (percent_decoded(key), percent_decoded(value)))
                .collect(),
        }))
    }
}

/// Decodes the `%xx` escapes of a name or value. Malformed escapes stay as they are.
fn percent_decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..2).filter(|_| *first == b'%');
        let byte = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = byte.map_or(behind, |_| &behind[2..]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
