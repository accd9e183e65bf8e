//! Moments of a run as people write them: `12.5s` from its start, or the wall time `2026-11-22T07:30:00Z`.

use crate::base::duration::duration_ns;
use jiff::Timestamp;
use std::time::Duration;

/// A moment of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Time since the first event.
    FromStart(Duration),
    /// Wall time in ns since 1970.
    Wall(i64),
}

/// Default length of each side of `--around`.
const AROUND: Duration = Duration::from_secs(5);

/// Parses a duration since the start of the run, or an RFC 3339 time.
///
/// # Errors
/// Returns a message that states what was expected.
pub fn parse_moment(text: &str) -> Result<Moment, String> {
    let text = text.trim();
    let wall = || i64::try_from(text.parse::<Timestamp>().ok()?.as_nanosecond()).ok();
    let from_start = |ns| Moment::FromStart(Duration::from_nanos(ns));
    let moment = duration_ns(text).map(from_start);
    moment.or_else(|| wall().map(Moment::Wall)).ok_or_else(|| {
        format!("expected a time from the start such as 12.5s, or one with its offset such as 2026-11-22T07:30:00Z, found {text:?}")
    })
}

/// Parses a moment and the time to show on either side of it: `T±D`, also written `T+-D`.
///
/// # Errors
/// Returns a message that states what was expected.
pub fn parse_around(text: &str) -> Result<(Moment, Duration), String> {
    let parts = text.split_once('±').or_else(|| text.split_once("+-"));
    let (moment, side) = parts.unwrap_or((text, ""));
    let side = match side.trim() {
        "" if parts.is_none() => AROUND,
        side => crate::parse_duration(side)?,
    };
    Ok((parse_moment(moment)?, side))
}

/// Formats a wall time. Returns `None` if it is out of the calendar's range.
pub(crate) fn wall_text(ns: i64) -> Option<String> {
    let time = Timestamp::from_nanosecond(ns.into()).ok()?;
    Some(time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_count_from_the_start_or_are_wall_times() {
        let from_start = |us| Ok(Moment::FromStart(Duration::from_micros(us)));
        let wall = |ns| Ok(Moment::Wall(ns));
        for (text, expected) in [
            ("0s", from_start(0)),
            ("12.5s", from_start(12_500_000)),
            (" 500ms ", from_start(500_000)),
            ("1970-01-01T00:00:01Z", wall(1_000_000_000)),
            ("1970-01-01T01:00:01.5+01:00", wall(1_500_000_000)),
            ("2026-11-22T07:30:00Z", wall(1_795_332_600_000_000_000)),
        ] {
            assert_eq!(parse_moment(text), expected, "{text}");
        }
        let refused = "|12.5|-1s|noon|2026-11-22|2026-11-22T07:30:00|2026-13-22T07:30:00Z|9999-01-01T00:00:00Z";
        for text in refused.split('|') {
            let error = parse_moment(text).expect_err(text);
            assert!(error.contains("12.5s") && error.ends_with(&format!("{text:?}")));
        }
    }

    #[test]
    fn around_has_two_sides() {
        let at = |ms, side_ms| {
            let [at, side] = [ms, side_ms].map(Duration::from_millis);
            Ok((Moment::FromStart(at), side))
        };
        for (text, expected) in [
            ("12s", at(12_000, 5_000)),
            ("12s±1.5s", at(12_000, 1_500)),
            ("12s +- 10ms", at(12_000, 10)),
        ] {
            assert_eq!(parse_around(text), expected, "{text}");
        }
        let wall = Ok((Moment::Wall(1_000_000_000), Duration::from_secs(1)));
        assert_eq!(parse_around("1970-01-01T01:00:01+01:00±1s"), wall);
        for text in ["12s±", "±1s", "12s±0s", "12s±1", "12s-1s"] {
            assert!(parse_around(text).is_err(), "{text}");
        }
    }
}
