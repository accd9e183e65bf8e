//! Lines of a trace: as the hand-written recorder and fastrace's reporter write them, and the search for finished spans.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use serde::Serialize;

/// One span.
#[derive(Serialize)]
pub(super) struct Line<'a> {
    pub(super) ph: &'a str,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) ts: f64,
    pub(super) dur: f64,
    pub(super) name: &'a str,
    pub(super) cat: &'a str,
    #[serde(skip_serializing_if = "LineArgs::is_none")]
    pub(super) args: LineArgs<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum LineArgs<'a> {
    None,
    Step {
        step: u64,
    },
    Three {
        step: u64,
        phase: &'a str,
        share: f64,
    },
    Texts(BTreeMap<&'a str, &'a str>),
}

impl LineArgs<'_> {
    fn is_none(&self) -> bool {
        matches!(self, LineArgs::None)
    }
}

pub(super) fn write_line(out: &mut impl Write, line: &Line<'_>) {
    serde_json::to_writer(&mut *out, line).expect("the line is plain data and the disk has room");
    out.write_all(b"\n").expect("the disk has room");
}

/// Returns the steps of the complete lines that contain `marker`; a torn last line is none.
///
/// # Errors
///
/// If the file cannot be read.
pub fn finished_lines(path: &Path, marker: &str) -> io::Result<Vec<u64>> {
    let mut reader = BufReader::with_capacity(1 << 20, File::open(path)?);
    let (mut line, mut steps) = (Vec::new(), Vec::new());
    while reader.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        let whole = text.trim_end().trim_end_matches(',').ends_with('}');
        if whole && text.contains(marker) {
            steps.extend(step(&text));
        }
        line.clear();
    }
    Ok(steps)
}

/// The step that a line carries, as a number or as a text.
fn step(line: &str) -> Option<u64> {
    let (_, after) = line.split_once(r#""step":"#)?;
    let after = after.trim_start_matches([' ', '"']);
    let digits = after
        .bytes()
        .take_while(u8::is_ascii_digit)
        .map(|digit| u64::from(digit - b'0'));
    let mut digits = digits.peekable();
    digits.peek()?;
    digits.try_fold(0_u64, |value, digit| {
        value.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbers_or_texts() {
        for (line, found) in [
            (r#"{"args":{"step":17},"ph":"E"}"#, Some(17)),
            (r#"{"args":{"step": "08"}}"#, Some(8)),
            (r#"{"args":{"step":}}"#, None),
            (r#"{"ph":"E"}"#, None),
        ] {
            assert_eq!(step(line), found, "{line}");
        }
    }

    #[test]
    fn torn_and_other_lines_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace");
        let text = "[\n{\"ph\":\"B\",\"a\":{\"step\":1}},\n{\"ph\":\"E\",\"a\":{\"step\":1}},\n{\"ph\":\"E\",\"a\":{\"step\":2";
        std::fs::write(&path, text).unwrap();
        assert_eq!(finished_lines(&path, r#""ph":"E""#).unwrap(), [1]);
    }
}
