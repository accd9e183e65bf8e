//! CPU profiles of V8, in events of phase `P`.
//!
//! The first event has the start of the profile in `args.data.startTime`, and the last one may have the end in `args.data.endTime`. The events between them
//! have call frames and samples, and the time from each sample to the next. Perfetto ignores the `ts` of these events and adds up the times from the start on,
//! so a part of a profile is useless without the parts before it. It aborts the import if one of their members has an unexpected type.

use crate::flow::{hexadecimal, member_value};
use crate::json::last_member;
use serde::Deserialize;
use trace_base::number::{Micros, micros, write_micros};

#[derive(Deserialize)]
struct ProfileArgs {
    data: ProfileData,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ProfileData {
    Begin {
        #[serde(rename = "startTime")]
        time_us: f64,
    },
    Part {
        #[serde(rename = "cpuProfile")]
        profile: ProfilePart,
        #[serde(default, rename = "timeDeltas")]
        deltas_us: Vec<i32>,
    },
    End {
        #[serde(rename = "endTime")]
        time_us: f64,
    },
}

#[derive(Deserialize)]
struct ProfilePart {
    #[serde(default, rename = "nodes")]
    _nodes: Vec<ProfileNode>,
    #[serde(default)]
    samples: Vec<u32>,
}

#[derive(Deserialize)]
struct ProfileNode {
    #[serde(rename = "id")]
    _id: u32,
    #[serde(rename = "parent")]
    _parent: Option<u32>,
    #[serde(rename = "callFrame")]
    _frame: ProfileFrame,
}

#[derive(Deserialize)]
struct ProfileFrame {
    #[serde(rename = "functionName")]
    _name: String,
    #[serde(default, rename = "url")]
    _url: String,
}

/// Returns true if viewers accept these args and this `id` member.
pub(crate) fn is_drawn(id: &[u8], args: &[u8]) -> bool {
    let id = member_value(id);
    let has_id = match id.strip_prefix(b"\"") {
        Some(text) => hexadecimal(text.strip_suffix(b"\"").unwrap_or_default()).is_some(),
        None => id.iter().all(u8::is_ascii_digit),
    };
    let is_known = match serde_json::from_slice::<ProfileArgs>(args).map(|args| args.data) {
        Ok(ProfileData::Begin { time_us } | ProfileData::End { time_us }) => time_us.abs() < 9e15,
        Ok(ProfileData::Part { profile, deltas_us }) => profile.samples.len() == deltas_us.len(),
        Err(_) => false,
    };
    has_id && is_known
}

/// Returns the line with its `startTime` or `endTime` moved by `moved_ns`, but not below 0.
pub(crate) fn with_moved_time(line: &[u8], moved_ns: i64) -> Vec<u8> {
    let data = member(line, b"args").and_then(|args| member(args, b"data"));
    let found = data.and_then(|data| {
        let start = member(data, b"startTime");
        start.or_else(|| member(data, b"endTime"))
    });
    let time_ns = found.and_then(|value| micros(value).map(Micros::ns));
    let (Some(value), Some(time_ns)) = (found, time_ns) else {
        return line.to_vec();
    };
    let moved_ns = time_ns.saturating_add(moved_ns).max(0);
    let start = value.as_ptr().addr() - line.as_ptr().addr();
    let mut out = line[..start].to_vec();
    write_micros(moved_ns.unsigned_abs(), &mut out);
    out.extend_from_slice(&line[start + value.len()..]);
    out
}

/// Returns the value of the last member of this name, if the text is an object.
fn member<'a>(object: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    last_member(object, name).filter(|_| object.starts_with(b"{"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Perfetto v52 counts an error for each rejected case, or aborts.
    #[test]
    fn events_that_abort_an_import_are_not_drawn() {
        let id = br#""id":"0x1f""#;
        // The expected result and the args of an event.
        for case in include_str!("../tests/profiles.txt").lines() {
            let (expected, args) = case.split_once(' ').unwrap();
            assert_eq!(is_drawn(id, args.as_bytes()), expected == "drawn", "{args}");
        }
        let begin = r#"{"data":{"startTime":1000}}"#;
        for (id, expected) in [
            ("", true),
            (r#""id" : 7"#, true),
            (r#""id":"x""#, false),
            ("\"id\":\"\"", false),
        ] {
            assert_eq!(is_drawn(id.as_bytes(), begin.as_bytes()), expected, "{id}");
        }
    }
}
