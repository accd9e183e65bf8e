//! What is known of a request between the passes, as records of numbers that can be sorted and put aside.

mod record;

use crate::clock::time_map::TimeMap;
use crate::store::sorter::Record;

const UNFINISHED: u64 = 1;
const OFFSET_BITS: u32 = 40;

/// Where an event stands: its source, its offset in that, and whether it is an unfinished span. No two events have the same one, and they are in the order of
/// the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EventPlace(pub(super) u64);

impl EventPlace {
    pub(super) fn new(source: usize, offset: usize, unfinished: bool) -> EventPlace {
        let place = (source as u64) << OFFSET_BITS | offset as u64;
        EventPlace(place << 1 | if unfinished { UNFINISHED } else { 0 })
    }

    pub(super) fn is_unfinished(self) -> bool {
        self.0 & UNFINISHED != 0
    }
}

/// The first and the last event of a request, each by its time and place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RequestReach {
    pub(super) first: (i64, EventPlace),
    pub(super) last: (i64, EventPlace),
}

impl RequestReach {
    /// That of no event.
    pub(super) const NONE: RequestReach = RequestReach {
        first: (i64::MAX, EventPlace(u64::MAX)),
        last: (i64::MIN, EventPlace(0)),
    };

    pub(super) fn of(ts_ns: i64, place: EventPlace) -> RequestReach {
        let at = (ts_ns, place);
        RequestReach {
            first: at,
            last: at,
        }
    }

    /// Adds an event.
    #[inline(always)]
    pub(super) fn see(&mut self, at: (i64, EventPlace)) {
        if at < self.first {
            self.first = at;
        }
        if at > self.last {
            self.last = at;
        }
    }

    pub(super) fn add(&mut self, other: &RequestReach) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }

    /// The same on another time axis.
    pub(super) fn placed(self, map: &TimeMap) -> RequestReach {
        if self == RequestReach::NONE {
            return self;
        }
        let placed = |(ts_ns, place): (i64, EventPlace)| (map.at(ts_ns), place);
        RequestReach {
            first: placed(self.first),
            last: placed(self.last),
        }
    }

    /// Whether it is more than one event.
    pub(super) fn is_chain(&self) -> bool {
        self.first.1 < EventPlace(u64::MAX) && self.first.1 != self.last.1
    }
}

/// An id in the events of one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Request {
    pub(super) key: u64,
    pub(super) clock: u32,
    /// Whether its recorder links it.
    pub(super) linked: bool,
    pub(super) reach: RequestReach,
}

impl Request {
    /// Adds what is known of the same request otherwise.
    pub(super) fn add(&mut self, other: &Request) {
        self.linked |= other.linked;
        self.reach.add(&other.reach);
    }
}

/// The key of an id that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RequestKey(pub(super) u64);

/// An id that may stand for the same request as another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Alias {
    /// The other.
    pub(super) other: u64,
    pub(super) id: u64,
    /// How good a reason there is, 0 being the best.
    pub(super) reason: u64,
}

/// An id and the one that it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Root {
    pub(super) id: u64,
    pub(super) reason: u64,
    pub(super) root: u64,
}

/// An id of a request that several stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RequestAlias {
    pub(super) root: u64,
    pub(super) id: u64,
}

/// How an id is linked: the flow of its request, and where that begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Link {
    pub(super) key: u64,
    pub(super) flow: u64,
    pub(super) first: EventPlace,
    pub(super) last: EventPlace,
}

/// Records that begin with a key.
pub(super) trait Keyed: Record {
    fn key(&self) -> u64;
}

impl Keyed for Request {
    fn key(&self) -> u64 {
        self.key
    }
}

impl Keyed for Alias {
    fn key(&self) -> u64 {
        self.other
    }
}

impl Keyed for RequestAlias {
    fn key(&self) -> u64 {
        self.root
    }
}

impl Keyed for RequestKey {
    fn key(&self) -> u64 {
        self.0
    }
}

impl Keyed for Root {
    fn key(&self) -> u64 {
        self.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_one_id_and_clock_become_one() {
        let request = |clock, linked, ts_ns, offset| Request {
            key: 7,
            clock,
            linked,
            reach: RequestReach::of(ts_ns, EventPlace::new(1, offset, false)),
        };
        let mut both = request(3, false, -5, 100);
        assert!(both.join(&request(3, true, 9, 50)));
        assert!(!both.join(&request(4, true, 9, 50)));
        assert_eq!((both.key, both.clock, both.linked), (7, 3, true));
        assert_eq!(both.reach.first, (-5, EventPlace::new(1, 100, false)));
        assert_eq!(both.reach.last, (9, EventPlace::new(1, 50, false)));
        assert!(both.reach.is_chain() && !RequestReach::NONE.is_chain());
        assert!(!RequestReach::of(1, EventPlace(2)).is_chain());
        assert_eq!(
            RequestReach::NONE.placed(&TimeMap::shift(9)),
            RequestReach::NONE
        );
        let mut bytes = Vec::new();
        both.store(&mut bytes);
        assert_eq!((bytes.len(), Request::load(&bytes)), (Request::BYTES, both));
    }
}
