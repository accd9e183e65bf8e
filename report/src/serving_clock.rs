//! Converts between times of the trace and serving time.

use crate::table::{Pause, ServingTime};

/// Converts times of the trace to serving time and back. Both are equal at the start of the first request. Serving time
/// does not advance during a pause. Without pauses, it equals the time of the trace, limited to the time with requests.
#[derive(Clone, Debug)]
pub(crate) struct ServingClock {
    from_ns: i64,
    to_ns: i64,
    /// Each pause, with the length of all pauses before it.
    pauses: Vec<(Pause, i64)>,
}

impl ServingClock {
    /// Creates the clock of a report's serving time: the time with requests, without pauses. If the report covers the
    /// whole run, the clock does not change times.
    pub(crate) fn new(serving: &ServingTime) -> ServingClock {
        match serving.is_whole {
            true => ServingClock::whole(),
            false => {
                let mut before_ns = 0;
                let with_before = |pause: &Pause| {
                    let entry = (*pause, before_ns);
                    before_ns += pause.to_ns - pause.from_ns;
                    entry
                };
                ServingClock {
                    pauses: serving.pauses.iter().map(with_before).collect(),
                    ..ServingClock::between((serving.from_ns, serving.to_ns))
                }
            }
        }
    }

    /// Creates the clock for reports on a whole run. It does not change times.
    pub(crate) fn whole() -> ServingClock {
        ServingClock::between((i64::MIN, i64::MAX))
    }

    /// Creates a clock that limits the trace to the time between two times, in ns, and has no pauses.
    pub(crate) fn between((from_ns, to_ns): (i64, i64)) -> ServingClock {
        ServingClock {
            from_ns,
            to_ns,
            pauses: Vec::new(),
        }
    }

    /// Converts a time of the trace, in ns, to serving time: subtracts the length of all pauses before it. A time in a
    /// pause becomes the start of the pause, and a time outside of serving time becomes the nearest time inside.
    pub(crate) fn serving_ns(&self, ns: i64) -> i64 {
        let ns = ns.clamp(self.from_ns, self.to_ns);
        ns - self.last_pause(ns).map_or(0, |(pause, before_ns)| {
            before_ns + pause.to_ns.min(ns) - pause.from_ns
        })
    }

    /// Converts a serving time, in ns, to a time of the trace. The serving time at which a pause starts becomes the end
    /// of the pause.
    pub(crate) fn trace_ns(&self, serving_ns: i64) -> i64 {
        let after = |(pause, before_ns): &(Pause, i64)| pause.from_ns - before_ns <= serving_ns;
        let last = self.pauses.partition_point(after).checked_sub(1);
        serving_ns
            + last.map_or(0, |nth| {
                let (pause, before_ns) = self.pauses[nth];
                before_ns + pause.to_ns - pause.from_ns
            })
    }

    /// Returns the last pause that started before a time of the trace, in ns, with the total length in ns of all
    /// earlier pauses. Returns `None` if no pause started before the time.
    fn last_pause(&self, ns: i64) -> Option<(Pause, i64)> {
        let before = self.pauses.partition_point(|(pause, _)| pause.from_ns < ns);
        Some(self.pauses[before.checked_sub(1)?])
    }

    /// Converts a span's start and end, in ns, to serving time, and cuts off what is outside. Returns `None` if the
    /// whole span is in a pause, before the serving time or after it.
    pub(crate) fn clip(&self, (start_ns, end_ns): (i64, i64)) -> Option<(i64, i64)> {
        let is_short = start_ns == end_ns && (self.from_ns..=self.to_ns).contains(&start_ns);
        let (from_ns, to_ns) = (self.serving_ns(start_ns), self.serving_ns(end_ns));
        let is_paused = || {
            let last = self.last_pause(start_ns);
            last.is_some_and(|(pause, _)| start_ns < pause.to_ns)
        };
        (from_ns < to_ns || is_short && !is_paused()).then_some((from_ns, to_ns))
    }
}
