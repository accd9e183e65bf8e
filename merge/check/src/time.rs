//! Times as viewers read them: integers exactly, everything else as a double.

use trace_base::number::{micros, unquoted};
use trace_event::member::is_time;

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
        if !is_time(text) {
            return Time::Bad;
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
}
