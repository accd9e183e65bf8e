//! What is known of a request between the passes, as records of numbers that can be sorted and put aside.

mod record;

use super::program::styles::Style;
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

/// `end_ns` of an instant, which is no span.
pub(super) const INSTANT: i64 = i64::MIN;

/// An event of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mention {
    pub(super) ts_ns: i64,
    pub(super) place: EventPlace,
    /// The key of its thread ([`super::program::flow_threads::ThreadKeys`]).
    pub(super) thread: u64,
    /// Its end: `i64::MAX` for an unfinished span, [`INSTANT`] for an instant.
    pub(super) end_ns: i64,
}

impl Mention {
    /// Returns true if it is a span and not an instant.
    pub(super) fn is_span(&self) -> bool {
        self.end_ns != INSTANT
    }

    /// Returns true if it is a span in which the program starts this flow.
    pub(super) fn holds_start(&self, flow: &OwnFlow) -> bool {
        self.thread == flow.thread && (self.ts_ns..=self.end_ns).contains(&flow.start_ns)
    }

    /// The same on another time axis.
    pub(super) fn placed(self, map: &TimeMap) -> Mention {
        Mention {
            ts_ns: map.at(self.ts_ns),
            end_ns: match self.end_ns {
                INSTANT | i64::MAX => self.end_ns,
                end_ns => map.at(end_ns),
            },
            ..self
        }
    }
}

/// The first event of a request, time and place of the last one, and the time of the second one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RequestReach {
    pub(super) first: Mention,
    /// `i64::MAX` if there is only one event.
    pub(super) second_ns: i64,
    pub(super) last: (i64, EventPlace),
}

impl RequestReach {
    /// That of no event.
    pub(super) const NONE: RequestReach = RequestReach {
        first: Mention {
            ts_ns: i64::MAX,
            place: EventPlace(u64::MAX),
            thread: 0,
            end_ns: INSTANT,
        },
        second_ns: i64::MAX,
        last: (i64::MIN, EventPlace(0)),
    };

    pub(super) fn of(mention: Mention) -> RequestReach {
        RequestReach {
            first: mention,
            second_ns: i64::MAX,
            last: (mention.ts_ns, mention.place),
        }
    }

    /// Adds an event.
    #[inline(always)]
    pub(super) fn see(&mut self, mention: &Mention) {
        if *mention < self.first {
            (self.first, self.second_ns) = (*mention, self.first.ts_ns);
        } else if *mention > self.first {
            self.second_ns = self.second_ns.min(mention.ts_ns);
        }
        self.last = self.last.max((mention.ts_ns, mention.place));
    }

    pub(super) fn add(&mut self, other: &RequestReach) {
        let (first, later) = (self.first.min(other.first), self.first.max(other.first));
        self.second_ns = self.second_ns.min(other.second_ns);
        // If both begin with the same event, it is not the second one.
        if later > first {
            self.second_ns = self.second_ns.min(later.ts_ns);
        }
        self.first = first;
        self.last = self.last.max(other.last);
    }

    /// The same on another time axis.
    pub(super) fn placed(self, map: &TimeMap) -> RequestReach {
        if self == RequestReach::NONE {
            return self;
        }
        RequestReach {
            first: self.first.placed(map),
            second_ns: match self.second_ns {
                i64::MAX => i64::MAX,
                second_ns => map.at(second_ns),
            },
            last: (map.at(self.last.0), self.last.1),
        }
    }

    /// Whether it is more than one event.
    pub(super) fn is_chain(&self) -> bool {
        self.first.place < EventPlace(u64::MAX) && self.first.place != self.last.1
    }
}

/// An id in the events of one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Request {
    pub(super) key: u64,
    pub(super) clock: u32,
    pub(super) reach: RequestReach,
}

impl Request {
    /// Adds what is known of the same request otherwise.
    pub(super) fn add(&mut self, other: &Request) {
        self.reach.add(&other.reach);
    }
}

/// What one thread draws of a flow that may be a request's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProgramFlow {
    /// The key of the id that the flow stands for.
    pub(super) key: u64,
    /// Its id in the trace.
    pub(super) id: u64,
    pub(super) style: Style,
    /// The key of the thread.
    pub(super) thread: u64,
    pub(super) clock: u32,
    /// The time of the first start; `i64::MAX` if it does not start here.
    pub(super) start_ns: i64,
    /// The time of the first end; `i64::MAX` if it does not end here.
    pub(super) end_ns: i64,
    /// True if one of our recordings has a start of it here.
    pub(super) has_our_start: bool,
    /// True if one of our recordings has a step or an end of it here.
    pub(super) has_our_rest: bool,
}

impl ProgramFlow {
    pub(super) fn is_same_flow(&self, other: &ProgramFlow) -> bool {
        (self.key, self.id, self.style) == (other.key, other.id, other.style)
    }

    /// Adds what the same thread draws otherwise.
    pub(super) fn add(&mut self, other: &ProgramFlow) {
        self.start_ns = self.start_ns.min(other.start_ns);
        self.end_ns = self.end_ns.min(other.end_ns);
        self.has_our_start |= other.has_our_start;
        self.has_our_rest |= other.has_our_rest;
    }

    /// The same on another time axis.
    pub(super) fn placed(self, map: &TimeMap) -> ProgramFlow {
        let placed = |ns| match ns {
            i64::MAX => i64::MAX,
            ns => map.at(ns),
        };
        ProgramFlow {
            clock: u32::MAX,
            start_ns: placed(self.start_ns),
            end_ns: placed(self.end_ns),
            ..self
        }
    }
}

/// A thread on which the program draws a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FlowThread {
    /// The key of the flow and the thread ([`super::program::flow_threads::flow_thread`]).
    pub(super) key: u64,
}

/// Which events there are of a flow of a single process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FlowPhases {
    /// The flow's id in the trace, combined with its style.
    pub(super) key: u64,
    pub(super) style: Style,
    pub(super) has_start: bool,
    pub(super) has_other: bool,
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
    /// The flow that the program draws for it.
    pub(super) own: Option<OwnFlow>,
}

/// A flow that the program draws, which the merge continues where the program does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OwnFlow {
    /// Its id in the trace, which is never 0.
    pub(super) id: u64,
    pub(super) style: Style,
    /// When it starts, on the axis of the trace.
    pub(super) start_ns: i64,
    /// When it ends, which is never if nothing ends it.
    pub(super) end_ns: i64,
    /// The key of the thread on which it starts.
    pub(super) thread: u64,
    /// True if arrows lead up to its start, because the request has an event before that.
    pub(super) has_lead: bool,
    /// True if the program draws it on other threads, too.
    pub(super) is_elsewhere: bool,
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

impl Keyed for ProgramFlow {
    fn key(&self) -> u64 {
        self.key
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

    fn mention(ts_ns: i64, place: EventPlace) -> Mention {
        Mention {
            ts_ns,
            place,
            thread: 3,
            end_ns: ts_ns + 1,
        }
    }

    #[test]
    fn records_of_one_id_and_clock_become_one() {
        let request = |clock, ts_ns, offset| Request {
            key: 7,
            clock,
            reach: RequestReach::of(mention(ts_ns, EventPlace::new(1, offset, false))),
        };
        let mut both = request(3, -5, 100);
        assert!(both.join(&request(3, 9, 50)));
        assert!(!both.join(&request(4, 9, 50)));
        assert_eq!((both.key, both.clock), (7, 3));
        assert_eq!(
            both.reach.first,
            mention(-5, EventPlace::new(1, 100, false))
        );
        assert_eq!(both.reach.last, (9, EventPlace::new(1, 50, false)));
        assert_eq!(both.reach.second_ns, 9);
        assert!(both.reach.is_chain() && !RequestReach::NONE.is_chain());
        assert!(!RequestReach::of(mention(1, EventPlace(2))).is_chain());
        assert_eq!(
            RequestReach::NONE.placed(&TimeMap::shift(9)),
            RequestReach::NONE
        );
        let mut bytes = Vec::new();
        both.store(&mut bytes);
        assert_eq!((bytes.len(), Request::load(&bytes)), (Request::BYTES, both));
    }

    /// Events are added in any order, and both halves of a request may contain the same event.
    #[test]
    fn the_second_event_is_known_in_any_order() {
        let at = |nth: i64| mention(10 * nth, EventPlace(nth.cast_unsigned()));
        let reach = |events: &[i64]| {
            let mut reach = RequestReach::NONE;
            events.iter().for_each(|nth| reach.see(&at(*nth)));
            reach
        };
        for events in [
            [1, 2, 3],
            [1, 3, 2],
            [2, 1, 3],
            [2, 3, 1],
            [3, 1, 2],
            [3, 2, 1],
        ] {
            assert_eq!(reach(&events), reach(&[1, 2, 3]));
            assert_eq!(reach(&events).second_ns, 20);
            for (left, right) in [
                (0..1, 1..3),
                (0..2, 2..3),
                (0..3, 1..2),
                (0..1, 0..3),
                (0..0, 0..3),
            ] {
                let mut both = reach(&events[left]);
                both.add(&reach(&events[right]));
                assert_eq!(both, reach(&events), "{events:?}");
            }
        }
        let shifted = reach(&[1, 2]).placed(&TimeMap::shift(5));
        assert_eq!(shifted.second_ns, 25);
        assert_eq!(
            reach(&[1, 1]).placed(&TimeMap::shift(5)).second_ns,
            i64::MAX
        );
    }

    #[test]
    fn what_is_put_aside_comes_back() {
        fn same<R: Record + Copy + std::fmt::Debug + PartialEq>(record: R) {
            let mut bytes = Vec::new();
            record.store(&mut bytes);
            assert_eq!((bytes.len(), R::load(&bytes)), (R::BYTES, record));
        }
        let own = OwnFlow {
            id: u64::MAX,
            style: Style(255),
            start_ns: -7,
            end_ns: i64::MAX,
            thread: 8,
            has_lead: true,
            is_elsewhere: false,
        };
        for own in [None, Some(own)] {
            same(Link {
                key: 1,
                flow: 2,
                first: EventPlace(3),
                last: EventPlace(4),
                own,
            });
        }
        for has_our_start in [false, true] {
            same(ProgramFlow {
                key: 9,
                id: 1 << 63,
                style: Style(255),
                thread: 3,
                clock: u32::MAX,
                start_ns: -9,
                end_ns: i64::MAX,
                has_our_start,
                has_our_rest: !has_our_start,
            });
        }
        same(FlowThread { key: 3 });
    }

    #[test]
    fn phases_of_one_flow_become_one() {
        let phases = |key, has_start| FlowPhases {
            key,
            style: Style(1),
            has_start,
            has_other: !has_start,
        };
        let mut both = phases(4, false);
        assert!(both.join(&phases(4, true)) && !both.join(&phases(5, true)));
        assert!(both.has_start && both.has_other);
        let mut bytes = Vec::new();
        both.store(&mut bytes);
        assert_eq!(
            (bytes.len(), FlowPhases::load(&bytes)),
            (FlowPhases::BYTES, both)
        );
    }
}
