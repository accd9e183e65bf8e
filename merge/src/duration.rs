//! Durations as people write them: `30s`, `500ms`, `2m`.

use std::time::Duration;

/// The units and their ns.
const UNITS: [(&str, u64); 5] = [
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads a whole number and its unit.
///
/// # Errors
/// What was expected, if it is anything else, nothing, or longer than a few hundred years.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let expected = || format!("expected a duration such as 30s, 500ms or 2m, found {text:?}");
    let (_, unit_ns) = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(expected)?;
    let number: u64 = number.parse().map_err(|_| expected())?;
    let ns = number
        .checked_mul(*unit_ns)
        .filter(|ns| (1..=u64::MAX / 4).contains(ns));
    ns.map(Duration::from_nanos).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_unit() {
        for (text, ms) in [
            ("30s", 30_000),
            ("500ms", 500),
            ("2m", 120_000),
            (" 1h ", 3_600_000),
            ("7000us", 7),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_millis(ms)),
                "{text}"
            );
        }
        for text in [
            "",
            "s",
            "30",
            "30 s",
            "-1s",
            "1.5s",
            "0s",
            "30S",
            "99999999999999999999s",
            "9999999h999",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
