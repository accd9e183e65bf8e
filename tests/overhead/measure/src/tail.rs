//! The tail of single events at a steady pace.

use std::fmt;

use crate::Beat;
use crate::clock::wall_ns;
use crate::quantile::rank;

/// 50,000 events a second.
pub const PERIOD_NS: u64 = 20_000;

/// Events before the measured ones.
const WARM: u64 = 1_000;

/// The quantiles of one run, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tail {
    /// The median.
    pub p50: f64,
    /// 99 % lie below.
    pub p99: f64,
    /// 99.9 % lie below.
    pub p999: f64,
    /// 99.99 % lie below.
    pub p9999: f64,
    /// The largest.
    pub max: f64,
}

impl Tail {
    /// Parses what [`fmt::Display`] printed.
    pub fn parse(line: &str) -> Option<Tail> {
        let mut fields = line.strip_prefix("TAIL ")?.split(' ').map(str::parse);
        let mut next = || fields.next()?.ok();
        Some(Tail {
            p50: next()?,
            p99: next()?,
            p999: next()?,
            p9999: next()?,
            max: next()?,
        })
    }
}

impl fmt::Display for Tail {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tail {
            p50,
            p99,
            p999,
            p9999,
            max,
        } = self;
        write!(formatter, "TAIL {p50} {p99} {p999} {p9999} {max}")
    }
}

/// Times each event. The thread spins to its next turn; after a stall it catches up, so the pace holds on average.
#[derive(Debug)]
pub struct Paced {
    taken_ns: Vec<u64>,
    turn_ns: u64,
    start_ns: u64,
}

impl Paced {
    /// Makes room for `events` measured events, and returns it with the number of steps to run.
    pub fn new(events: u64) -> (Paced, u64) {
        let mut taken_ns = vec![0; usize::try_from(events).unwrap_or(0)];
        taken_ns.fill(1); // touches the pages
        taken_ns.clear();
        let paced = Paced {
            taken_ns,
            turn_ns: wall_ns(),
            start_ns: 0,
        };
        (paced, events + WARM)
    }

    /// The quantiles of what was timed.
    pub fn tail(mut self) -> Tail {
        self.taken_ns.sort_unstable();
        let times = &self.taken_ns;
        let at = |share: f64| {
            times
                .get(rank(times.len(), share))
                .map_or(0.0, |&ns| ns as f64)
        };
        Tail {
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            max: at(1.0),
        }
    }
}

impl Beat for Paced {
    #[inline(always)]
    fn before(&mut self, _: u64) {
        self.turn_ns += PERIOD_NS;
        while wall_ns() < self.turn_ns {
            std::hint::spin_loop();
        }
        self.start_ns = wall_ns();
    }

    #[inline(always)]
    fn after(&mut self, step: u64) {
        let taken_ns = wall_ns() - self.start_ns;
        if step >= WARM {
            self.taken_ns.push(taken_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::peer::{Control, Peer};

    #[test]
    fn what_is_printed_can_be_parsed() {
        let tail = Tail {
            p50: 40.0,
            p99: 41.5,
            p999: 300.0,
            p9999: 4_000.0,
            max: 1e6,
        };
        assert_eq!(Tail::parse(&tail.to_string()), Some(tail));
        assert_eq!(Tail::parse("TAIL 1 2 x 4 5"), None);
    }

    #[test]
    fn every_event_after_the_first_ones_is_timed() {
        let (mut paced, steps) = Paced::new(50);
        Control.record(Kind::Span, 0..steps, &mut paced);
        assert_eq!(paced.taken_ns.len(), 50);
        let tail = paced.tail();
        assert!(tail.p50 > 0.0 && tail.max >= tail.p9999, "{tail}");
    }
}
