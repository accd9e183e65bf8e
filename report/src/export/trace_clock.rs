//! What times of the trace are on clocks of others.

use trace_merge::events::TraceEvents;

/// When the trace begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TraceClock {
    /// In ns since 1970, where a recorder noted that; else in ns of the input's own clock.
    begin_ns: i64,
    /// Whether it is the first.
    is_wall: bool,
}

impl TraceClock {
    pub(super) fn of(events: &TraceEvents<'_>) -> TraceClock {
        let wall_ns = events.base_unix_ns();
        TraceClock {
            begin_ns: wall_ns.unwrap_or(events.report().clocks.base_ns),
            is_wall: wall_ns.is_some(),
        }
    }

    /// A time of the trace in seconds.
    pub(super) fn seconds(self, ns: i64) -> f64 {
        self.ns(ns) as f64 / 1e9
    }

    /// In ms.
    pub(super) fn ms(self, ns: i64) -> f64 {
        self.ns(ns) as f64 / 1e6
    }

    /// The date and time of day in UTC, where the wall clock is known.
    pub(super) fn date(self, ns: i64) -> Option<String> {
        let at = jiff::Timestamp::from_nanosecond(self.ns(ns)).ok()?;
        self.is_wall
            .then(|| at.strftime("%Y-%m-%d %H:%M:%S%.6f").to_string())
    }

    fn ns(self, ns: i64) -> i128 {
        i128::from(self.begin_ns) + i128::from(ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_wall_clock() {
        let clock = TraceClock {
            begin_ns: 1_700_000_000_000_000_000,
            is_wall: true,
        };
        let at = clock.date(1_500_000).unwrap();
        assert_eq!(at, "2023-11-14 22:13:20.001500");
        assert!((clock.seconds(1_500_000_000) - 1_700_000_001.5).abs() < 1e-6);
        assert!((clock.ms(2_000_000) - 1_700_000_000_002.0).abs() < 1e-3);
        let own = TraceClock {
            is_wall: false,
            ..clock
        };
        assert_eq!(own.date(0), None);
    }
}
