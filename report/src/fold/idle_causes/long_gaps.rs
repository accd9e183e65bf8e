//! Finds the longest gaps among idle intervals, each with its main cause.

use crate::rows::IdleInterval;
use crate::table::{IdleCause, LongGap};
use std::cmp::Reverse;

/// Number of gaps that a report lists.
pub(crate) const SHOWN: usize = 10;

/// Idle time by cause in ns, in the order of [`IdleCause::ALL`].
pub(crate) type CauseTimes = [i64; IdleCause::ALL.len()];

/// The longest gaps so far.
#[derive(Debug, Default)]
pub(crate) struct LongGaps {
    /// The gap that the last interval belongs to: device, start and idle time by cause.
    open: Option<(usize, i64, CauseTimes)>,
    longest: Vec<LongGap>,
}

impl LongGaps {
    /// Adds an idle interval of a device. If it belongs to another gap than the last interval, that gap ends. The
    /// intervals of one gap must follow each other.
    pub(crate) fn add(&mut self, idle: &IdleInterval) {
        let place = (idle.process, idle.gap_start_ns);
        let is_next = |(process, start_ns, _): &mut _| (*process, *start_ns) != place;
        if let Some(ended) = self.open.take_if(is_next) {
            self.end(ended);
        }
        let new = (place.0, place.1, [0; IdleCause::ALL.len()]);
        let (.., causes) = self.open.get_or_insert(new);
        causes[idle.cause as usize] += idle.dur_ns;
    }

    /// Adds an ended gap to the longest gaps. Its cause is the one with the most idle time.
    fn end(&mut self, (process, start_ns, causes): (usize, i64, CauseTimes)) {
        let times = IdleCause::ALL.into_iter().zip(causes);
        let most = times.max_by_key(|(cause, ns)| (*ns, Reverse(cause.name())));
        self.longest.extend(most.map(|(cause, cause_ns)| LongGap {
            process,
            start_ns,
            end_ns: start_ns.saturating_add(causes.iter().sum()),
            dur_ns: causes.iter().sum(),
            cause,
            cause_ns,
        }));
        if self.longest.len() >= 8 * SHOWN {
            self.shorten();
        }
    }

    /// Sorts the gaps, and drops all but the longest.
    fn shorten(&mut self) {
        self.longest
            .sort_by_key(|gap| (Reverse(gap.dur_ns), gap.start_ns, gap.process));
        self.longest.truncate(SHOWN);
    }

    /// Returns the longest gaps, longest first.
    pub(crate) fn finish(mut self) -> Vec<LongGap> {
        let last = self.open.take();
        last.into_iter().for_each(|gap| self.end(gap));
        self.shorten();
        self.longest
    }
}
