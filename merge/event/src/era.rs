//! Finds the time range in which a recording took place, from its events and anchors. A damaged time that is far from all others would become the base of the
//! trace, and viewers would show decades without events.
//!
//! In: the times of a recording's events and anchors. Out: the time range of its valid events, if any event is outside of it.

use crate::event::Event;
use crate::scan::{Found, Part, scan_part};
use sa_format::Anchor;
use std::cmp::Reverse;
use std::collections::BTreeMap;

const DAY_NS: i64 = 86_400_000_000_000;
/// Minimum distance of separate groups of events.
const FAR_NS: i64 = 30 * DAY_NS;
/// Distance at which even a larger group of events has damaged times. For shorter distances, the recording may have paused.
const DECADE_NS: i64 = 3652 * DAY_NS;
/// A group has damaged times only if at most one in this many events belongs to it. Otherwise, the recording has paused.
const MIN_RATIO: u64 = 10;
/// Maximum size of a group with damaged times. Such times are rarely close together, so more events within a decade were recorded before or after a pause.
const MAX_DAMAGED: u64 = 3;
/// Maximum length of a span. It may last as long as its process, which may run as long as its host. A longer span has a damaged end.
const LONG_NS: i64 = 366 * DAY_NS;
/// Range of times since 1970 in the years 2001 to 2043.
const WALL_NS: std::ops::Range<i64> = 1_000_000_000_000_000_000..2_300_000_000_000_000_000;

/// A time range in which events begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Era {
    from_ns: i64,
    to_ns: i64,
}

impl Era {
    /// Returns the range around these times, extended on both sides by the distance of separate groups.
    fn around(first_ns: i64, last_ns: i64) -> Era {
        Era {
            from_ns: first_ns.saturating_sub(FAR_NS),
            to_ns: last_ns.saturating_add(FAR_NS),
        }
    }

    /// Returns true if an event from `first_ns` to `last_ns` begins in the range and is not too long.
    #[inline]
    pub fn holds(self, (first_ns, last_ns): (i64, i64)) -> bool {
        let ends_by_ns = self.to_ns.saturating_add(LONG_NS);
        self.from_ns <= first_ns && first_ns <= self.to_ns && last_ns <= ends_by_ns
    }

    /// Returns true if both times are in the range.
    fn holds_all(self, (first_ns, last_ns): (i64, i64)) -> bool {
        self.from_ns <= first_ns && last_ns <= self.to_ns
    }

    /// Returns true if the event belongs to the range. Events without a time always do.
    #[inline]
    pub fn holds_event(self, event: &Event<'_>) -> bool {
        let end_ns = event.ts_ns.saturating_add(event.dur_ns);
        event.is_metadata() || self.holds((event.ts_ns, end_ns))
    }
}

/// Events that began on each day.
#[derive(Clone, Debug, Default)]
pub struct Days(BTreeMap<i64, Group>);

/// Number and times of events that are close together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    events: u64,
    first_ns: i64,
    last_ns: i64,
}

impl Group {
    fn at(ns: i64) -> Group {
        Group {
            events: 1,
            first_ns: ns,
            last_ns: ns,
        }
    }

    fn add(&mut self, other: Group) {
        self.events += other.events;
        self.first_ns = self.first_ns.min(other.first_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
    }

    /// Returns the time between this group and another one.
    fn distance_ns(&self, other: &Group) -> i64 {
        let after_ns = other.first_ns.saturating_sub(self.last_ns);
        after_ns.max(self.first_ns.saturating_sub(other.last_ns))
    }
}

impl Days {
    /// Adds an event that begins at `ns`.
    #[inline]
    pub fn see(&mut self, ns: i64) {
        self.add_group(ns.div_euclid(DAY_NS), Group::at(ns));
    }

    fn add_group(&mut self, day: i64, group: Group) {
        let day = self.0.entry(day);
        day.and_modify(|day| day.add(group)).or_insert(group);
    }

    /// Adds the events of `other`.
    pub fn append(mut self, other: Days) -> Days {
        for (day, group) in other.0 {
            self.add_group(day, group);
        }
        self
    }

    /// Joins days without a long pause between them to groups.
    fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for day in self.0.values() {
            match groups.last_mut() {
                Some(group) if group.distance_ns(day) <= FAR_NS => group.add(*day),
                _ => groups.push(*day),
            }
        }
        groups
    }

    /// Returns the largest group. Among equally large ones, prefers plausible times since 1970, and then the earliest.
    fn largest_group(&self) -> Option<Group> {
        let rank = |group: &Group| {
            let is_wall = WALL_NS.contains(&group.first_ns);
            (group.events, is_wall, Reverse(group.first_ns))
        };
        self.groups().into_iter().max_by_key(rank)
    }

    /// Returns the range in which most events took place, if not all of them did. The last event ends at `end_ns`. Anchors count like events.
    pub fn doubt(&self, anchors: Days, end_ns: i64) -> Option<Era> {
        let groups = self.groups();
        let begins = (groups.first()?.first_ns, groups.last()?.last_ns);
        let era = self.clone().append(anchors).era()?;
        let is_whole = era.holds_all(begins) && era.holds((begins.1, end_ns));
        (!is_whole).then_some(era)
    }

    /// Returns the range in which most events took place, or `None` if this is unclear.
    fn era(&self) -> Option<Era> {
        let (groups, largest) = (self.groups(), self.largest_group()?);
        let all: u64 = groups.iter().map(|group| group.events).sum();
        let (mut era, mut kept) = (largest, 0);
        for group in &groups {
            let is_small =
                group.events <= MAX_DAMAGED && group.events.saturating_mul(MIN_RATIO) <= all;
            if *group == largest || (!is_small && largest.distance_ns(group) < DECADE_NS) {
                era.add(*group);
                kept += group.events;
            }
        }
        // A single event is not enough, and in a recording of many years no range has most of the events.
        let is_clear = all > 1 && kept.saturating_mul(2) >= all;
        is_clear.then(|| Era::around(era.first_ns, era.last_ns))
    }
}

/// Returns the time range of a recording's valid events, if some are outside of it. `range_ns` are its first and its last time. `days` returns the begins of
/// its events, and is only called if necessary.
pub fn era_of_odd_times(
    range_ns: (i64, i64),
    anchors: &[Anchor],
    days: impl FnOnce() -> Days,
) -> Option<Era> {
    let mut anchor_days = Days::default();
    for anchor in anchors {
        if let Ok(ns) = i64::try_from(anchor.monotonic_ns) {
            anchor_days.see(ns);
        }
    }
    // Valid events are close to the anchors, or, without anchors, to each other.
    let center = anchor_days.largest_group().unwrap_or(Group::at(range_ns.0));
    if Era::around(center.first_ns, center.last_ns).holds_all(range_ns) {
        return None;
    }
    // An anchor may be damaged, too. No checksum covers the first one, because it is not in a block.
    days().doubt(anchor_days, range_ns.1)
}

/// Collects the begins of the events in a part.
pub fn days(bytes: &[u8], part: Part) -> Days {
    let mut days = Days::default();
    scan_part(bytes, part, |_, found| {
        if let Found::Event(event) = found
            && !event.is_metadata()
        {
            days.see(event.ts_ns);
        }
    });
    days
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH_NS: i64 = 1_795_248_902_000_000_000;

    fn era(times: &[(i64, i64)]) -> Option<Era> {
        let mut days = Days::default();
        for (at_ns, events) in times {
            (0..*events).for_each(|nth| days.see(at_ns + nth));
        }
        days.era()
    }

    #[test]
    fn issue_19_a_few_events_long_before_all_others_stay() {
        let later = EPOCH_NS + 40 * DAY_NS;
        let found = era(&[(EPOCH_NS, 10), (later, 500)]).unwrap();
        assert!(found.holds((EPOCH_NS, EPOCH_NS)), "the start of a program");
        let found = era(&[(EPOCH_NS, 1), (later, 500)]).unwrap();
        assert!(!found.holds((EPOCH_NS, EPOCH_NS)), "a single event");
        let lifetime = (EPOCH_NS, EPOCH_NS + 200 * DAY_NS);
        assert!(era(&[(EPOCH_NS, 500)]).unwrap().holds(lifetime));
    }
}
