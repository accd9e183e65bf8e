//! What all recordings of a host say of its clocks.

use crate::align::{Host, Reading, Wall, clamp, drop_disordered, drop_odd, take_lone, thin};
use crate::fragment::liveness::{Boot, boot};
use sa_format::{Anchor, FragmentHeader};

/// Most readings of the clocks of a host that are kept.
const MOST_READINGS: usize = 4096;

/// Clock readings and event times of a recording.
pub(crate) struct RecordedClock<'a> {
    pub(crate) header: &'a FragmentHeader,
    pub(crate) anchors: &'a [Anchor],
    /// Its first and its last event, in its own time.
    pub(crate) events_ns: Option<(i64, i64)>,
}

/// What the recordings of each boot say; `is_all` if their events are known, and not only the first ones.
pub(super) fn hosts(boots: &[Boot], known: &[RecordedClock<'_>], is_all: bool) -> Vec<Host> {
    let mut drafts: Vec<HostDraft> = Vec::new();
    drafts.resize_with(boots.len(), HostDraft::default);
    let mut each = |add: &dyn Fn(&mut HostDraft, &RecordedClock<'_>)| {
        for known in known {
            if let Ok(number) = boots.binary_search(&boot(known.header)) {
                add(&mut drafts[number], known);
            }
        }
    };
    each(&HostDraft::add_events);
    each(&|draft, known| draft.add_readings(known, is_all));
    drafts.into_iter().map(HostDraft::host).collect()
}

/// A host while its recordings are looked at.
#[derive(Default)]
struct HostDraft {
    readings: Vec<Reading>,
    /// Those that are believed only if there are no others.
    lone: Vec<Reading>,
    events_ns: Option<(i64, i64)>,
}

impl HostDraft {
    fn add_events(&mut self, known: &RecordedClock<'_>) {
        let own = |ns: i64| clamp(ns.saturating_sub(known.header.monotonic_offset_ns));
        let events = known.events_ns.map(|(first, last)| (own(first), own(last)));
        self.events_ns = match (self.events_ns, events) {
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
            (one, other) => one.or(other),
        };
    }

    fn add_readings(&mut self, known: &RecordedClock<'_>, is_all: bool) {
        let offset_ns = known.header.monotonic_offset_ns;
        let readings = known.anchors.iter();
        let mut readings: Vec<Reading> = readings
            .map(|anchor| Reading::of(anchor, offset_ns))
            .collect();
        drop_disordered(&mut readings, |reading| reading.at_ns);
        if let Some(events_ns) = self.events_ns.filter(|_| is_all) {
            add(&mut self.lone, take_lone(&mut readings, events_ns));
        }
        drop_odd(&mut readings);
        add(&mut self.readings, readings);
    }

    fn host(self) -> Host {
        let mut readings = match self.readings.is_empty() {
            true => self.lone,
            false => self.readings,
        };
        // The first and the last one of a recording have neighbours in others.
        readings.sort_by_key(|reading| (reading.at_ns, reading.uncertainty_ns, reading.ahead_ns));
        drop_odd(&mut readings);
        Host {
            wall: Wall::of(readings),
            events_ns: self.events_ns,
        }
    }
}

/// Adds readings of another recording, and keeps not too many.
fn add(all: &mut Vec<Reading>, readings: Vec<Reading>) {
    all.extend(readings);
    if all.len() > 2 * MOST_READINGS {
        all.sort_by_key(|reading| (reading.at_ns, reading.uncertainty_ns, reading.ahead_ns));
        thin(all, MOST_READINGS, |reading| *reading);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::header;
    use sa_format::Anchor;

    fn anchor(monotonic_ns: u64, realtime_ns: u64) -> Anchor {
        Anchor {
            monotonic_ns,
            realtime_ns,
            uncertainty_ns: 40,
        }
    }

    /// No checksum vouches for the front of a segment.
    #[test]
    fn damaged_anchors_move_no_host() {
        let header = header(1);
        let good: Vec<Anchor> = (0..40)
            .map(|n| anchor(n * 5_000_000_000, 1_000 + n * 5_000_000_000))
            .collect();
        let place = |anchors: &[Anchor]| {
            let known = RecordedClock {
                events_ns: Some((5_000_000_000, 190_000_000_000)),
                header: &header,
                anchors,
            };
            let hosts = hosts(&[boot(&header)], &[known], true);
            let wall = hosts.into_iter().next().and_then(|host| host.wall).unwrap();
            (wall.curve.as_shift(), wall.steps)
        };
        assert_eq!(place(&good), (Some(1_000), 0));
        for at in [0, 1, 17, 39] {
            for monotonic_ns in [0, 590_000_000_000, 5_900_000_000_000, u64::MAX] {
                let mut anchors = good.clone();
                anchors[at].monotonic_ns = monotonic_ns;
                let is_so = at == 0 && monotonic_ns == 0;
                assert!(is_so || anchors != good);
                assert_eq!(place(&anchors), (Some(1_000), 0), "{at} {monotonic_ns}");
            }
        }
        // If there is no other one, it is believed.
        assert_eq!(
            place(&[anchor(5_900_000_000_000, 5_900_000_000_500)]).0,
            Some(500)
        );
    }
}
