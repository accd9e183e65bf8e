//! Figures of each of the last seconds.

use super::figures::Figures;

/// Number of seconds that are kept: a minute, and some more for late events.
const SECONDS: i64 = 64;
const SECOND_NS: i64 = 1_000_000_000;

/// Figures of one second.
#[derive(Clone, Debug, Default)]
pub(super) struct Second {
    number: i64,
    pub(super) figures: Figures,
    /// Tokens that engines put into their steps.
    pub(super) prefill_tokens: u64,
    pub(super) decode_tokens: u64,
    /// Busy time of each device, with its process number.
    pub(super) busy_ns: Vec<(u32, i64)>,
}

/// The seconds of the last minute and a few more, up to the newest event.
#[derive(Clone, Debug, Default)]
pub(super) struct LastSeconds {
    seconds: Vec<Second>,
    newest_ns: i64,
}

impl LastSeconds {
    /// Records that the run has reached a time of the trace, in ns. Seconds that are then too old count as dropped.
    pub(super) fn advance_to(&mut self, ns: i64) {
        self.newest_ns = self.newest_ns.max(ns);
    }

    /// Returns the entry for the second that contains a time of the trace, in ns. Returns `None` if that second is no
    /// longer kept or starts after the newest event.
    pub(super) fn second_at(&mut self, ns: i64) -> Option<&mut Second> {
        let number = ns.div_euclid(SECOND_NS);
        let newest = self.newest_ns.div_euclid(SECOND_NS);
        if number > newest || number <= newest - SECONDS {
            return None;
        }
        if self.seconds.is_empty() {
            let empty = Second {
                number: i64::MIN,
                ..Second::default()
            };
            self.seconds = vec![empty; usize::try_from(SECONDS).unwrap_or(0)];
        }
        let place = usize::try_from(number.rem_euclid(SECONDS)).ok()?;
        let second = self.seconds.get_mut(place)?;
        if second.number != number {
            *second = Second {
                number,
                ..Second::default()
            };
        }
        Some(second)
    }

    /// Adds the time of a device's slice to the seconds that it overlaps.
    pub(super) fn add_busy(&mut self, device: u32, from_ns: i64, to_ns: i64) {
        let first_ns = self
            .newest_ns
            .saturating_sub(SECONDS * SECOND_NS)
            .max(from_ns);
        // Later seconds do not exist yet. The limit also bounds the loop if a time is wrong.
        let to_ns = to_ns.min((self.newest_ns.div_euclid(SECOND_NS) + 1) * SECOND_NS);
        let mut at_ns = first_ns;
        while at_ns < to_ns {
            let end_ns = (at_ns.div_euclid(SECOND_NS) + 1) * SECOND_NS;
            let part_ns = end_ns.min(to_ns) - at_ns;
            if let Some(second) = self.second_at(at_ns) {
                match second
                    .busy_ns
                    .iter_mut()
                    .find(|(other, _)| *other == device)
                {
                    Some((_, busy_ns)) => *busy_ns += part_ns,
                    None => second.busy_ns.push((device, part_ns)),
                }
            }
            at_ns = end_ns;
        }
    }

    /// Returns up to `seconds` whole seconds before the second of `end_ns`. Seconds without any event are left out.
    pub(super) fn before(&self, end_ns: i64, seconds: i64) -> impl Iterator<Item = &Second> {
        let end = end_ns.div_euclid(SECOND_NS);
        let range = end - seconds..end;
        let seconds = self.seconds.iter();
        seconds.filter(move |second| range.contains(&second.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_forgotten_after_a_minute() {
        let mut seconds = LastSeconds::default();
        for number in 0..200 {
            let ns = number * SECOND_NS + 5;
            seconds.advance_to(ns);
            seconds.second_at(ns).unwrap().figures.arrived += 1;
            assert!(seconds.second_at(ns + SECOND_NS).is_none());
            assert!(seconds.second_at(ns - SECONDS * SECOND_NS).is_none());
        }
        let arrived = |end, last| {
            let seconds = seconds.before(end * SECOND_NS, last);
            seconds.map(|second| second.figures.arrived).sum::<u64>()
        };
        assert_eq!((arrived(199, 10), arrived(199, 60)), (10, 60));
        // Nothing has happened since.
        assert_eq!((arrived(205, 10), arrived(205, 60)), (5, 55));
        assert_eq!((arrived(334, 10), arrived(334, 60)), (0, 0));
    }

    #[test]
    fn a_slice_is_busy_in_each_of_its_seconds() {
        let mut seconds = LastSeconds::default();
        seconds.advance_to(5 * SECOND_NS);
        seconds.add_busy(7, SECOND_NS / 2, 2 * SECOND_NS + 1);
        seconds.add_busy(7, 2 * SECOND_NS + 1, 2 * SECOND_NS + 3);
        let busy = seconds
            .before(5 * SECOND_NS, 60)
            .map(|second| second.busy_ns[0].1);
        let busy: Vec<i64> = busy.collect();
        assert_eq!(busy, [SECOND_NS / 2, SECOND_NS, 3]);
        // This must not loop over each second of the range.
        seconds.add_busy(7, i64::MIN, i64::MAX);
    }
}
