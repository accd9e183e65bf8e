//! Times as viewers read them: integers exactly, everything else as a double.

use super::loose::member;
use crate::number::{micros, unquoted};
use memchr::memmem;

/// A time in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    Absent,
    /// No number.
    Bad,
    Ns {
        ns: i64,
        /// Whether it is not what the text says.
        is_off: bool,
    },
}

impl Time {
    /// Reads the text of a value.
    pub(super) fn of(text: &[u8]) -> Time {
        if text.is_empty() {
            return Time::Absent;
        }
        let Ok(digits) = std::str::from_utf8(unquoted(text)) else {
            return Time::Bad;
        };
        if let Some(ns) = digits
            .parse::<i64>()
            .ok()
            .and_then(|us| us.checked_mul(1000))
        {
            return Time::Ns { ns, is_off: false };
        }
        match digits.parse::<f64>() {
            Ok(us) if us.is_finite() => Time::of_double(us, text),
            _ => Time::Bad,
        }
    }

    fn of_double(us: f64, text: &[u8]) -> Time {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "what does not fit becomes the largest number, as far off as any"
        )]
        let ns = if us.fract() == 0.0 {
            (us as i64).saturating_mul(1000)
        } else {
            (us * 1000.0).round() as i64
        };
        let is_off = micros(text).is_none_or(|exact| {
            let off = exact.ns().abs_diff(ns);
            // A half may be rounded either way.
            off > u64::from(!exact.is_whole_ns())
        });
        Time::Ns { ns, is_off }
    }
}

/// Whether an event has a thread time (`tts`, `tdur`) that is no number. Few events have one, so that most are only searched for it.
pub(super) fn has_bad_thread_time(event: &[u8]) -> bool {
    ["tts", "tdur"].into_iter().any(|key| {
        memmem::find(event, key.as_bytes()).is_some()
            && Time::of(member(event, key.as_bytes())) == Time::Bad
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_times_as_viewers_do() {
        let ns = |ns, is_off| Time::Ns { ns, is_off };
        let table = [
            ("", Time::Absent),
            ("null", Time::Bad),
            ("true", Time::Bad),
            ("\"abc\"", Time::Bad),
            ("\"nan\"", Time::Bad),
            ("12", ns(12_000, false)),
            ("-2.25", ns(-2250, false)),
            ("\"200.5\"", ns(200_500, false)),
            ("81234567.891", ns(81_234_567_891, false)),
            ("0.0005", ns(1, false)),
            ("1763689523000050.074", ns(1_763_689_523_000_050_000, true)),
            ("1763689523000050.5", ns(1_763_689_523_000_050_432, true)),
            ("1763689523000051.0", ns(1_763_689_523_000_051_000, false)),
            ("1763689523000050", ns(1_763_689_523_000_050_000, false)),
        ];
        for (text, time) in table {
            assert_eq!(Time::of(text.as_bytes()), time, "{text}");
        }
    }

    #[test]
    fn thread_times_are_numbers() {
        for good in [
            r#"{"tts":"3.5","tdur":2}"#,
            r#"{"args":{"tts":null}}"#,
            "{}",
        ] {
            assert!(!has_bad_thread_time(good.as_bytes()), "{good}");
        }
        for bad in [r#"{"tts":null}"#, r#"{"a":1,"tdur":"x"}"#] {
            assert!(has_bad_thread_time(bad.as_bytes()), "{bad}");
        }
    }
}
