//! Lines of spans without an end, and the readers of times and numbers in lines.

use std::io::Write;

use crate::text::event_count::is_metadata;
use crate::text::record::Growing;

/// Makes the line of a span without an end. Without memory for it the line is empty, which is counted. The text `names` reads
/// `"name":"…","cat":"…"`, and `args` are JSON without the braces.
pub(crate) fn begin_line((pid, tid): (u32, u32), ts_ns: u64, names: &[u8], args: &[u8]) -> Vec<u8> {
    let (us, ns) = (ts_ns / 1000, ts_ns % 1000);
    let mut line = Growing::default();
    // Writing to it cannot fail.
    let _ = write!(
        line,
        r#"{{"ph":"B","pid":{pid},"tid":{tid},"ts":{us}.{ns:03},"#
    );
    line.add(names);
    if !args.is_empty() {
        line.add(br#","args":{"#);
        line.add(args);
        line.add(b"}");
    }
    line.add(b"}\n");
    line.into_line()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stand_in_the_order_of_the_format() {
        let names = br#""name":"a","cat":"b""#;
        let line = |args| String::from_utf8(begin_line((7, 8), 1_002_003, names, args)).unwrap();
        assert_eq!(
            line(br#""m":1"#),
            "{\"ph\":\"B\",\"pid\":7,\"tid\":8,\"ts\":1002.003,\"name\":\"a\",\"cat\":\"b\",\"args\":{\"m\":1}}\n"
        );
        assert_eq!(
            line(b""),
            "{\"ph\":\"B\",\"pid\":7,\"tid\":8,\"ts\":1002.003,\"name\":\"a\",\"cat\":\"b\"}\n"
        );
    }
}
