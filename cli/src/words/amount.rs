//! Parses times and counts of the command line, and formats them for tables.

use std::time::Duration;

pub(crate) use trace_report::screen::{aligned, grouped};

/// Parses `30s`, `500ms`, `5m`, `2h`, or a number of seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let units = [
        ("ms", 1),
        ("", 1000),
        ("s", 1000),
        ("m", 60_000),
        ("min", 60_000),
        ("h", 3_600_000),
    ];
    let ms = number(text, &units).ok_or("expected a time such as 30s, 500ms, 5m or 2h")?;
    Ok(Duration::from_millis(ms))
}

/// Parses `1000`, `10k`, `1M`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let units = [
        ("", 1),
        ("k", 1000),
        ("K", 1000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
    ];
    let count = number(text, &units).ok_or("expected a number such as 1000, 10k or 1M")?;
    Ok(count)
}

/// Parses a number above 0 with one of these units.
fn number(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, each) = units.iter().find(|(name, _)| *name == unit)?;
    let number = number.parse::<u64>().ok()?.checked_mul(*each)?;
    (number > 0).then_some(number)
}

/// Formats a size in bytes, with a unit that leaves up to three digits before the point.
pub(crate) fn size(bytes: u64) -> String {
    let units = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut scaled = bytes as f64 / 1000.0;
    let mut unit = 0;
    while scaled >= 999.95 && unit + 1 < units.len() {
        scaled /= 1000.0;
        unit += 1;
    }
    format!("{scaled:.1} {}", units[unit])
}

/// Formats how long ago something was.
pub(crate) fn age(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    match seconds {
        0..10 => format!("{seconds}.{} s", ns / 100_000_000 % 10),
        10..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_counts() {
        let second = Duration::from_secs(1);
        for (text, expected) in [
            ("30s", 30 * second),
            ("500ms", second / 2),
            ("5m", 300 * second),
            ("5min", 300 * second),
            ("2h", 7200 * second),
            ("7", 7 * second),
        ] {
            assert_eq!(duration(text), Ok(expected), "{text}");
        }
        for text in ["", "s", "0s", "-1s", "1.5s", "30 s", "1d"] {
            assert!(duration(text).is_err(), "{text}");
        }
        for (text, number) in [
            ("7", 7),
            ("10k", 10_000),
            ("1M", 1_000_000),
            ("2G", 2_000_000_000),
        ] {
            assert_eq!(count(text), Ok(number), "{text}");
        }
        for text in ["", "k", "0", "-1", "1m", "1.5M", "99999999999999999G"] {
            assert!(count(text).is_err(), "{text}");
        }
        assert!(duration("99999999999999999999h").is_err());
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (12_345, "12.3 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (2_000_000_000, "2.0 GB"),
            (5_000_000_000_000_000, "5000.0 TB"),
        ] {
            assert_eq!(size(bytes), text);
        }
        for (ms, text) in [
            (250, "0.2 s"),
            (12_000, "12 s"),
            (180_000, "3 min"),
            (9_000_000, "2 h"),
            (200_000_000, "2 days"),
        ] {
            assert_eq!(age(ms * 1_000_000), text);
        }
    }
}
