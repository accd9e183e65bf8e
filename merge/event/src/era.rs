//! When a recording took place, as far as its events and anchors agree. A damaged time that lies far from all others would become the base of the
//! trace, and viewers would show decades of nothing.
//!
//! In: the times of a recording's events, and of its anchors. Out: the stretch of time in which its events must lie, if any does not.

use crate::event::Event;
use crate::scan::{Found, Part, scan_part};
use sa_format::Anchor;
use std::cmp::Reverse;
use std::collections::BTreeMap;

const DAY_NS: i64 = 86_400_000_000_000;
/// An event farther than this from all others is none of their time.
const FAR_NS: i64 = 30 * DAY_NS;
/// Where more than a few events lie together, a month may be a pause; this is none.
const DECADE_NS: i64 = 3652 * DAY_NS;
/// Of how many events one may be apart, for its time to be damaged rather than a pause before it.
const FEW: u64 = 10;
/// Damaged times rarely lie together: more than these, within a decade, were recorded before or after a pause.
const MOST_FEW: u64 = 3;
/// A span may last as long as its process, and that as long as its host; a longer one has a damaged end.
const LONG_NS: i64 = 366 * DAY_NS;
/// Times since 1970 of the years 2001 to 2043.
const WALL_NS: std::ops::Range<i64> = 1_000_000_000_000_000_000..2_300_000_000_000_000_000;

/// A stretch of time in which events begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Era {
    from_ns: i64,
    to_ns: i64,
}

impl Era {
    /// The times that are near enough to these.
    fn around(first_ns: i64, last_ns: i64) -> Era {
        Era {
            from_ns: first_ns.saturating_sub(FAR_NS),
            to_ns: last_ns.saturating_add(FAR_NS),
        }
    }

    /// Whether an event from `first_ns` to `last_ns` is of it.
    #[inline]
    pub fn holds(self, (first_ns, last_ns): (i64, i64)) -> bool {
        let ends_by_ns = self.to_ns.saturating_add(LONG_NS);
        self.from_ns <= first_ns && first_ns <= self.to_ns && last_ns <= ends_by_ns
    }

    /// Whether all between these times is of it, however long it lasts.
    fn holds_all(self, (first_ns, last_ns): (i64, i64)) -> bool {
        self.from_ns <= first_ns && last_ns <= self.to_ns
    }

    /// Whether an event lies in it; one without a time does.
    #[inline]
    pub fn holds_event(self, event: &Event<'_>) -> bool {
        let end_ns = event.ts_ns.saturating_add(event.dur_ns);
        event.is_metadata() || self.holds((event.ts_ns, end_ns))
    }
}

/// How many events began on each day.
#[derive(Clone, Debug, Default)]
pub struct Days(BTreeMap<i64, Group>);

/// Events that lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    events: u64,
    first_ns: i64,
    last_ns: i64,
}

impl Group {
    fn of(ns: i64) -> Group {
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

    /// How long before or after this one another group is.
    fn distance_ns(&self, other: &Group) -> i64 {
        let after_ns = other.first_ns.saturating_sub(self.last_ns);
        after_ns.max(self.first_ns.saturating_sub(other.last_ns))
    }
}

impl Days {
    /// Takes the begin of an event.
    #[inline]
    pub fn see(&mut self, ns: i64) {
        self.put(ns.div_euclid(DAY_NS), Group::of(ns));
    }

    fn put(&mut self, day: i64, group: Group) {
        let day = self.0.entry(day);
        day.and_modify(|day| day.add(group)).or_insert(group);
    }

    /// These and what comes after them.
    pub fn append(mut self, other: Days) -> Days {
        for (day, group) in other.0 {
            self.put(day, group);
        }
        self
    }

    /// Days with no long pause between them, put together.
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

    /// The most events that lie together; of as many those that can be times since 1970, else the first.
    fn main(&self) -> Option<Group> {
        let rank = |group: &Group| {
            let is_wall = WALL_NS.contains(&group.first_ns);
            (group.events, is_wall, Reverse(group.first_ns))
        };
        self.groups().into_iter().max_by_key(rank)
    }

    /// When most of the events took place, if not all of them are of that time; the last one ends at `end_ns`. `anchors` have a say as events do.
    pub fn doubt(&self, anchors: Days, end_ns: i64) -> Option<Era> {
        let groups = self.groups();
        let begins = (groups.first()?.first_ns, groups.last()?.last_ns);
        let era = self.clone().append(anchors).era()?;
        let is_whole = era.holds_all(begins) && era.holds((begins.1, end_ns));
        (!is_whole).then_some(era)
    }

    /// When most of the events took place; `None` if nobody can tell.
    fn era(&self) -> Option<Era> {
        let (groups, main) = (self.groups(), self.main()?);
        let all: u64 = groups.iter().map(|group| group.events).sum();
        let (mut era, mut kept) = (main, 0);
        for group in &groups {
            let is_few = group.events <= MOST_FEW && group.events.saturating_mul(FEW) <= all;
            if *group == main || (!is_few && main.distance_ns(group) < DECADE_NS) {
                era.add(*group);
                kept += group.events;
            }
        }
        // One event says nothing, and a timeline of years has no main part.
        let is_known = all > 1 && kept.saturating_mul(2) >= all;
        is_known.then(|| Era::around(era.first_ns, era.last_ns))
    }
}

/// The era of a recording in which not all events lie: these are its first and its last time and its anchors, and `days` says when its events began.
pub fn doubted(range_ns: (i64, i64), known: &[Anchor], days: impl FnOnce() -> Days) -> Option<Era> {
    let mut anchors = Days::default();
    for anchor in known {
        if let Ok(ns) = i64::try_from(anchor.monotonic_ns) {
            anchors.see(ns);
        }
    }
    // Whatever was recorded lies near the anchors, else near all else.
    let near = anchors.main().unwrap_or(Group::of(range_ns.0));
    if Era::around(near.first_ns, near.last_ns).holds_all(range_ns) {
        return None;
    }
    // An anchor may be damaged as well, and the first one is not in a block that would tell.
    days().doubt(anchors, range_ns.1)
}

/// When the events of a part began.
pub fn days_of(bytes: &[u8], part: Part) -> Days {
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
        assert!(!found.holds((EPOCH_NS, EPOCH_NS)), "one alone");
        let lifetime = (EPOCH_NS, EPOCH_NS + 200 * DAY_NS);
        assert!(era(&[(EPOCH_NS, 500)]).unwrap().holds(lifetime));
    }
}
