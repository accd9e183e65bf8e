//! Times of the trace ↔ serving time.

use crate::table::{Pause, ServingTime};

/// Converts times of the trace to serving time and back. Serving time begins at the first request with that request's own time, and stands still in a pause.
/// Without pauses it is the time of the trace, limited to the time with requests.
#[derive(Clone, Debug)]
pub(crate) struct ServingClock {
    from_ns: i64,
    to_ns: i64,
    pauses: Vec<Pause>,
}

impl ServingClock {
    /// Returns the clock of some serving time. The clock of a whole run changes no time.
    pub(crate) fn new(serving: &ServingTime) -> ServingClock {
        match serving.is_whole {
            true => ServingClock::whole(),
            false => ServingClock {
                pauses: serving.pauses.clone(),
                ..ServingClock::between((serving.from_ns, serving.to_ns))
            },
        }
    }

    /// Returns the clock that changes no time.
    pub(crate) fn whole() -> ServingClock {
        ServingClock::between((i64::MIN, i64::MAX))
    }

    /// Returns the clock of the time between two times, without pauses.
    pub(crate) fn between((from_ns, to_ns): (i64, i64)) -> ServingClock {
        ServingClock {
            from_ns,
            to_ns,
            pauses: Vec::new(),
        }
    }

    /// Converts a time of the trace. A time outside becomes the nearest one inside.
    pub(crate) fn serving_ns(&self, ns: i64) -> i64 {
        let ns = ns.clamp(self.from_ns, self.to_ns);
        let before = |pause: &&Pause| pause.from_ns < ns;
        let pauses = self.pauses.iter().take_while(before);
        let paused_ns: i64 = pauses.map(|of| of.to_ns.min(ns) - of.from_ns).sum();
        ns - paused_ns
    }

    /// Converts a serving time back. The time of a pause becomes the pause's end.
    pub(crate) fn trace_ns(&self, serving_ns: i64) -> i64 {
        let mut ns = serving_ns;
        for pause in &self.pauses {
            if pause.from_ns > ns {
                break;
            }
            ns += pause.to_ns - pause.from_ns;
        }
        ns
    }

    /// Returns the part of a span that is inside, in serving time; `None` if it is outside.
    pub(crate) fn clip(&self, (start_ns, end_ns): (i64, i64)) -> Option<(i64, i64)> {
        let is_short = start_ns == end_ns && (self.from_ns..=self.to_ns).contains(&start_ns);
        let (from_ns, to_ns) = (self.serving_ns(start_ns), self.serving_ns(end_ns));
        let is_paused = || {
            let mut pauses = self.pauses.iter();
            pauses.any(|pause| pause.from_ns < start_ns && start_ns < pause.to_ns)
        };
        (from_ns < to_ns || is_short && !is_paused()).then_some((from_ns, to_ns))
    }
}
