//! Lines of events that stand elsewhere than on the calling thread: on a virtual lane or a track.

use crate::sys::memory::reserve;
use crate::text::event_count::is_metadata;

/// Room for the rest of a line: keys, and numbers of 10 and 24 digits.
const FIXED_BYTES: usize = 160;

/// Where and when an event stands.
pub(crate) struct Place {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) ts_ns: u64,
    /// Duration for `X`.
    pub(crate) duration_ns: Option<u64>,
}

/// Makes a line. Where there is no memory for it, the line is empty, and that is counted. The text `middle` stands between the time and the names.
/// The text `names` reads `"name":"…","cat":"…"`, and `args` are JSON without the braces.
pub(crate) fn line(phase: u8, place: &Place, middle: &[u8], names: &[u8], args: &[u8]) -> Vec<u8> {
    let mut line = Vec::new();
    if !reserve(
        &mut line,
        FIXED_BYTES + middle.len() + names.len() + args.len(),
    ) {
        return line;
    }
    line.extend_from_slice(b"{\"ph\":\"");
    line.push(phase);
    line.extend_from_slice(b"\",\"pid\":");
    number(&mut line, place.pid.into());
    line.extend_from_slice(b",\"tid\":");
    number(&mut line, place.tid.into());
    line.extend_from_slice(b",\"ts\":");
    micros(&mut line, place.ts_ns);
    if let Some(duration_ns) = place.duration_ns {
        line.extend_from_slice(b",\"dur\":");
        micros(&mut line, duration_ns);
    }
    line.extend_from_slice(middle);
    line.push(b',');
    line.extend_from_slice(names);
    if !args.is_empty() {
        line.extend_from_slice(b",\"args\":{");
        line.extend_from_slice(args);
        line.push(b'}');
    }
    line.extend_from_slice(b"}\n");
    line
}

/// Returns the start of the event in a line, in ns; `None` for metadata.
pub(crate) fn line_start_ns(line: &[u8]) -> Option<u64> {
    if line.is_empty() || is_metadata(line) {
        return None;
    }
    number_after(line, br#""ts":"#)
}

/// Returns the number after `key` in a canonical line; a time in ns.
pub(crate) fn number_after(line: &[u8], key: &[u8]) -> Option<u64> {
    let at = memchr::memmem::find(line, key)? + key.len();
    let mut digits = line[at..]
        .iter()
        .filter(|byte| **byte != b'.')
        .take_while(|byte| byte.is_ascii_digit());
    digits.try_fold(0u64, |value, digit| {
        value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

fn number(line: &mut Vec<u8>, number: u64) {
    line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn micros(line: &mut Vec<u8>, ns: u64) {
    number(line, ns / 1000);
    let part = u32::try_from(ns % 1000).unwrap_or(0);
    line.push(b'.');
    for digit in [part / 100, part / 10 % 10, part % 10] {
        line.push(b'0' + u8::try_from(digit).unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stand_in_the_order_of_the_format() {
        let place = |duration_ns| Place {
            pid: 7,
            tid: 8,
            ts_ns: 1_002_003,
            duration_ns,
        };
        let text = |line: Vec<u8>| String::from_utf8(line).unwrap();
        let names = br#""name":"a","cat":"b""#;
        assert_eq!(
            text(line(b'X', &place(Some(40)), b"", names, br#""m":1"#)),
            "{\"ph\":\"X\",\"pid\":7,\"tid\":8,\"ts\":1002.003,\"dur\":0.040,\"name\":\"a\",\"cat\":\"b\",\"args\":{\"m\":1}}\n"
        );
        assert_eq!(
            text(line(b'i', &place(None), br#","s":"t""#, names, b"")),
            "{\"ph\":\"i\",\"pid\":7,\"tid\":8,\"ts\":1002.003,\"s\":\"t\",\"name\":\"a\",\"cat\":\"b\"}\n"
        );
    }
}
