//! What the user adds to the times of a trace: `FILE=±DURATION`.

use crate::base::duration::duration_ns;
use std::path::PathBuf;

/// Longest offset: beyond it sums of times could overflow.
const LIMIT_NS: u64 = i64::MAX.cast_unsigned() / 4;

/// What to add to the times of one input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The input, as it is named among the paths.
    pub path: PathBuf,
    /// Nanoseconds.
    pub ns: i64,
}

/// Reads `FILE=±DURATION`, such as `trace.json=-1.5s`.
///
/// # Errors
/// What was expected, if it is anything else.
pub fn parse_offset(text: &str) -> Result<Offset, String> {
    let expected = || {
        format!(
            "expected FILE=DURATION such as trace.json=+1.5s or trace.json=-20ms, found {text:?}"
        )
    };
    let (path, duration) = text.rsplit_once('=').ok_or_else(expected)?;
    let ns = signed_ns(duration.trim()).ok_or_else(expected)?;
    if path.is_empty() {
        return Err(expected());
    }
    Ok(Offset {
        path: PathBuf::from(path),
        ns,
    })
}

fn signed_ns(text: &str) -> Option<i64> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let ns = duration_ns(text).filter(|ns| *ns <= LIMIT_NS)?;
    let ns = i64::try_from(ns).ok()?;
    Some(if negative { -ns } else { ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_have_a_sign_and_a_unit() {
        for (text, ns) in [
            ("t.json=+1.5s", 1_500_000_000),
            ("t.json=-20ms", -20_000_000),
            ("a=b.json=0s", 0),
            ("t.json=36661.206804001s", 36_661_206_804_001),
            ("t.json=-1ns", -1),
            ("t.json=2m", 120_000_000_000),
        ] {
            assert_eq!(parse_offset(text).map(|offset| offset.ns), Ok(ns), "{text}");
        }
        assert_eq!(parse_offset("a=b=0s").unwrap().path, PathBuf::from("a=b"));
        for text in [
            "",
            "t.json",
            "t.json=",
            "=1s",
            "t.json=1",
            "t.json=+-1s",
            "t.json=99999999999h",
        ] {
            assert!(parse_offset(text).is_err(), "{text}");
        }
    }
}
