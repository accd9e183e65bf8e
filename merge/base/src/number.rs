//! Converts microsecond texts to exact integers. Times are never stored as doubles, which would lose nanoseconds.

use crate::swar;
use std::ops::Range;

/// Largest accepted time in ns. It is greater than today's epoch times, and leaves room to shift and add without overflow.
const LIMIT_NS: i128 = (i64::MAX / 4) as i128;

/// A time with the precision of its text, down to picoseconds. Further digits are cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Micros {
    whole_ns: i64,
    /// Picoseconds on top of `whole_ns`, less than 1000.
    rest_ps: i64,
}

impl Micros {
    /// Rounds half up to whole nanoseconds.
    #[inline]
    pub fn ns(self) -> i64 {
        self.whole_ns + i64::from(self.rest_ps >= 500)
    }

    /// Returns true if this is a whole number of ns.
    #[inline]
    pub fn is_whole_ns(self) -> bool {
        self.rest_ps == 0
    }

    /// Returns the whole ns from `self` to `self + span`. Both ends are rounded, rather than the length, so that equal ends stay equal.
    #[inline]
    pub fn span_ns(self, span: Micros) -> i64 {
        let rest_ps = self.rest_ps + span.rest_ps;
        let end = Micros {
            whole_ns: self.whole_ns + span.whole_ns + rest_ps / 1000,
            rest_ps: rest_ps % 1000,
        };
        end.ns() - self.ns()
    }

    fn from_ps(ps: i128) -> Option<Micros> {
        Some(Micros {
            whole_ns: i64::try_from(ps.div_euclid(1000)).ok()?,
            rest_ps: i64::try_from(ps.rem_euclid(1000)).ok()?,
        })
    }
}

/// Parses a number without decimals or with three of them, in microseconds. Nearly all lines have such numbers. Returns ns.
#[inline]
fn parse_simple(text: &[u8]) -> Option<i64> {
    let (value, len) = swar::digits(text, 0)?;
    if len == text.len() {
        return Some(value * 1000);
    }
    three_decimals(text)
        .filter(|(_, len)| *len == text.len())
        .map(|(ns, _)| ns)
}

/// Parses microseconds with exactly three decimals, such as `12.345`, at the beginning of `text`.
/// Returns the time in ns and the length of the number in bytes. Returns `None` for any other form.
#[inline(always)]
pub fn three_decimals(text: &[u8]) -> Option<(i64, usize)> {
    let (value, at) = swar::digits(text, 0)?;
    let [b'.', a, b, c] = *text.get(at..)?.first_chunk::<4>()? else {
        return None;
    };
    let digits = a.is_ascii_digit() & b.is_ascii_digit() & c.is_ascii_digit();
    if !digits || text.get(at + 4).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let decimals = i64::from(a - b'0') * 100 + i64::from(b - b'0') * 10 + i64::from(c - b'0');
    Some((value * 1000 + decimals, at + 4))
}

/// Parses a JSON number, or a string with such a number in it, as microseconds.
#[inline]
pub fn micros(text: &[u8]) -> Option<Micros> {
    if let Some(whole_ns) = parse_simple(text) {
        return Some(Micros {
            whole_ns,
            rest_ps: 0,
        });
    }
    let text = unquoted(text);
    let (negative, text) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = split_exponent(text)?;
    let point = mantissa.iter().position(|byte| *byte == b'.');
    let (whole, decimals) = match point {
        Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        None => (mantissa, &b""[..]),
    };
    if whole.is_empty() || (point.is_some() && decimals.is_empty()) {
        return None;
    }
    let digits = whole.iter().chain(decimals);
    let shift = 6 + exponent - i64::try_from(decimals.len()).ok()?;
    let ps = scaled(digits.copied(), shift)?;
    if ps > LIMIT_NS * 1000 {
        return None;
    }
    Micros::from_ps(if negative { -ps } else { ps })
}

/// Returns true for 0. Reports leave such counts out.
pub fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Removes the quotes of a JSON string. Other text is returned as it is.
#[inline]
pub fn unquoted(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\"")
        .and_then(|rest| rest.strip_suffix(b"\""))
        .unwrap_or(text)
}

fn split_exponent(text: &[u8]) -> Option<(&[u8], i64)> {
    let Some(at) = text.iter().position(|byte| matches!(byte, b'e' | b'E')) else {
        return Some((text, 0));
    };
    let exponent: i64 = std::str::from_utf8(&text[at + 1..]).ok()?.parse().ok()?;
    (exponent.abs() <= 1000).then_some((&text[..at], exponent))
}

/// Returns the number times ten to the power of `shift`, truncated to an integer, or `None` if a byte is not a digit or the value is too large.
fn scaled(digits: impl Iterator<Item = u8>, shift: i64) -> Option<i128> {
    let mut value = 0i128;
    let mut dropped = 0i64;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        if value > i128::MAX / 100 {
            dropped += 1;
        } else {
            value = value * 10 + i128::from(byte - b'0');
        }
    }
    let shift = shift + dropped;
    for _ in 0..shift.unsigned_abs() {
        if value == 0 {
            break;
        }
        value = if shift < 0 {
            value / 10
        } else {
            value.checked_mul(10)?
        };
    }
    Some(value)
}

/// Appends a time in ns as microseconds with three decimals.
#[inline(always)]
pub fn write_micros(ns: u64, out: &mut Vec<u8>) {
    let (whole, decimals) = (ns / 1000, ns % 1000);
    let Some((text, len)) = swar::text(whole) else {
        return out.extend_from_slice(format!("{whole}.{decimals:03}").as_bytes());
    };
    put_front(&text, len, out);
    let digit = |unit: u64| (decimals / unit % 10) as u8 + b'0';
    out.extend_from_slice(&[b'.', digit(100), digit(10), digit(1)]);
}

/// Appends the first `len` bytes of a text. It copies all `N` bytes and then truncates `out`, because a copy of constant length takes a few instructions,
/// and any other copy is a function call.
#[inline(always)]
pub fn put_front<const N: usize>(text: &[u8; N], len: usize, out: &mut Vec<u8>) {
    let end = out.len() + len;
    out.extend_from_slice(text);
    out.truncate(end);
}

/// Appends a range of a line. This is fast if the range has at most 32 bytes.
#[inline(always)]
pub fn put_short(line: &[u8], range: Range<usize>, out: &mut Vec<u8>) {
    match line.get(range.start..).and_then(<[u8]>::first_chunk::<32>) {
        Some(text) if range.len() <= text.len() => put_front(text, range.len(), out),
        _ => out.extend_from_slice(&line[range]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_exactly() {
        // Microseconds as text, and nanoseconds.
        for case in include_str!("../tests/micros.txt").lines() {
            let (text, expected) = case.split_once(' ').unwrap();
            let found = micros(text.as_bytes()).map(Micros::ns);
            assert_eq!(found, expected.parse().ok(), "{text}");
        }
    }

    #[test]
    fn rounding_keeps_equal_ends_equal() {
        let parent = (micros(b"10.0004").unwrap(), micros(b"1.0004").unwrap());
        let child = (micros(b"10.5001").unwrap(), micros(b"0.5007").unwrap());
        let end = |(ts, dur): (Micros, Micros)| ts.ns() + ts.span_ns(dur);
        assert_eq!(end(parent), end(child));
    }

    #[test]
    fn three_decimals_only() {
        assert_eq!(three_decimals(b"81234567.891,"), Some((81_234_567_891, 12)));
        for text in "1|1.5|1.5000|.500|x|1234567890123456.000|1.5a0".split('|') {
            assert_eq!(three_decimals(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn writes_three_decimals() {
        for (ns, text) in [
            (7, "0.007"),
            (999, "0.999"),
            (1_000, "1.000"),
            (1_000_007, "1000.007"),
            (9_999_999_999_999_999_999, "9999999999999999.999"),
            (10_000_000_000_000_000_000, "10000000000000000.000"),
            (u64::MAX, "18446744073709551.615"),
        ] {
            let mut out = Vec::new();
            write_micros(ns, &mut out);
            assert_eq!(out, text.as_bytes());
        }
    }
}
