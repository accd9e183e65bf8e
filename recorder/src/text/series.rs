//! The series of a counter: args whose values are finite numbers. A boolean counts as 0 or 1. Any
//! other value is left out and counted.

use crate::sys::memory::{copy_or_empty, count_loss};
use crate::text::value::Args;
use sa_format::loss::Cause;

/// Maximum length of a number without an exponent that is certainly finite as a double.
const SHORT_NUMBER: usize = 300;

/// Returns the args whose values a counter can draw, as numbers. Leaves out all others and counts
/// them. Returns `None` if no arg is left.
pub(crate) fn numbers(args: &Args) -> Option<Args> {
    let mut text = copy_or_empty(args.text());
    keep_numbers(&mut text, 0);
    (!text.is_empty()).then(|| Args::from_text(text))
}

/// Removes and counts the args whose value is not a finite number, and replaces booleans with 0 or
/// 1. The args are the part of `text` from byte `from` on, as JSON without braces.
#[cold]
#[inline(never)]
pub(crate) fn keep_numbers(text: &mut Vec<u8>, from: usize) {
    let (mut at, mut end) = (from, from);
    while at < text.len() {
        let member = Member::first(&text[at..]);
        let value = text[at + member.value_at..at + member.len].trim_ascii();
        let kept = match value {
            b"true" => Some((member.value_at, &b"1"[..])),
            b"false" => Some((member.value_at, &b"0"[..])),
            number => is_finite(number).then_some((member.len, &b""[..])),
        };
        match kept {
            Some((len, digit)) => {
                if end > from {
                    text[end] = b',';
                    end += 1;
                }
                text.copy_within(at..at + len, end);
                end += len;
                text[end..end + digit.len()].copy_from_slice(digit);
                end += digit.len();
            }
            None => count_loss(Cause::BadSeries),
        }
        at += member.len + 1;
    }
    text.truncate(end);
}

/// Returns true if a JSON value is a number that is finite when stored as a double.
fn is_finite(value: &[u8]) -> bool {
    if !matches!(value.first(), Some(b'-' | b'0'..=b'9')) {
        return false;
    }
    let is_plain = value.len() <= SHORT_NUMBER && !value.iter().any(|byte| byte | 0x20 == b'e');
    let parsed = || std::str::from_utf8(value).ok()?.parse::<f64>().ok();
    is_plain || parsed().is_some_and(f64::is_finite)
}

/// A key and its value in JSON text.
pub(crate) struct Member {
    /// Offset of the value.
    value_at: usize,
    /// Offset of the comma after the value, or of the end of the text.
    pub(crate) len: usize,
}

impl Member {
    /// Finds the first key and value in args, which are the text of a JSON object without its
    /// braces.
    pub(crate) fn first(text: &[u8]) -> Member {
        let (mut depth, mut is_in_text, mut value_at) = (0_i32, false, None);
        let mut len = text.len();
        let mut bytes = text.iter().copied().enumerate();
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b'\\' if is_in_text => {
                    bytes.next();
                }
                b'"' => is_in_text = !is_in_text,
                _ if is_in_text => {}
                b':' if depth == 0 => value_at = Some(at + 1),
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                b',' if depth == 0 => {
                    len = at;
                    break;
                }
                _ => {}
            }
        }
        let value_at = value_at.unwrap_or(len);
        Member { value_at, len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issue_47_a_counter_keeps_finite_numbers() {
        for case in include_str!("../../tests/series.txt").lines() {
            let (args, kept) = case.split_once(" -> ").unwrap();
            let mut text = b"before".to_vec();
            text.extend_from_slice(args.as_bytes());
            keep_numbers(&mut text, 6);
            let expected = format!("before{kept}");
            assert_eq!(String::from_utf8(text).unwrap(), expected, "{args}");
        }
    }

    #[test]
    fn args_without_a_number_are_dropped() {
        let args = Args::new().with("a", f64::NAN).with("b", f32::INFINITY);
        assert!(numbers(&args).is_none() && numbers(&Args::new()).is_none());
        let args = args.with("c", true);
        assert_eq!(numbers(&args).unwrap().text(), br#""c":1"#);
    }
}
