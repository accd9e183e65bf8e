//! Durations as people write them: `30s`, `1.5s`, `500ms`, `2m`.

use crate::size::amount;
use std::time::Duration;

/// Units and their length in ns.
const UNITS: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Parses a positive duration: a number and its unit.
///
/// # Errors
/// Returns a message if the text has another form, is zero or not a whole number of ns, or exceeds about 146 years.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let ns = duration_ns(text).filter(|ns| *ns > 0);
    let expected = || format!("expected a duration such as 30s, 500ms or 2m, found {text:?}");
    ns.map(Duration::from_nanos).ok_or_else(expected)
}

/// Parses the possible error of a clock, which is a duration that may be zero.
///
/// # Errors
/// Returns a message in the same cases as [`parse_duration`], except for zero.
pub fn parse_error(text: &str) -> Result<Duration, String> {
    let ns = duration_ns(text.trim());
    let expected = || format!("expected a duration such as 50ms, 200us or 0s, found {text:?}");
    ns.map(Duration::from_nanos).ok_or_else(expected)
}

/// Parses a duration, which may be zero. Returns its ns, or `None` if the text has another form or is not a whole number of ns.
pub fn duration_ns(text: &str) -> Option<u64> {
    let (ns, is_whole) = amount(text, &UNITS)?;
    is_whole.then_some(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_unit() {
        // Durations and their microseconds.
        for case in include_str!("../tests/durations.txt").lines() {
            let (text, us) = case.split_once('=').unwrap();
            let us = us.parse().unwrap();
            let expected = Ok(Duration::from_micros(us));
            assert_eq!(parse_duration(text), expected, "{text}");
        }
        let refused = "|s|30|-1s|1.s|.5s|0.5ns|0s|30S|99999999999999999999s|1.99999999999999999999999999999999999999999s";
        for text in refused.split('|') {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        assert_eq!(duration_ns("0s"), Some(0));
    }
}
